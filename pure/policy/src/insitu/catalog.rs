//! The catalogue of strategies: one row each. It feeds the command line, `iolab strategies`, the
//! documentation and the conformance suite.

use super::classes::{
    Classes, Interference, Layer, Need, Owned, Scope, Semantics, Shape, State, Visibility,
};
use super::cruel::Trouble;
use super::hdf5::Properties;
use super::mpiio::{Collect, Demote, Hints, MpiIoStage};
use super::netcdf;
use super::parameter::{Parameters, unknown};
use super::write_back::Settings;
use super::{
    Count, Cruel, DeferClose, FsyncRelax, Null, SeekElide, SeekFree, Stage, Strategy, Throttle,
    WriteBack, read_ahead, window,
};
use iolab_vocab::Refusal;

/// One strategy.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// How to write it.
    pub usage: &'static str,
    /// Its classes.
    pub classes: Classes,
    /// How one is made.
    pub build: Build,
}

/// How a strategy is made, by the layer whose calls it hears ([`Classes::layer`]).
#[derive(Clone, Copy)]
pub enum Build {
    /// Makes one for one file.
    Posix(fn(&Parameters) -> Result<Box<dyn Strategy>, Refusal>),
    /// Makes one for the files that are opened through MPI-IO.
    MpiIo(fn(&Parameters) -> Result<MpiIoStage, Refusal>),
    /// Reads where files begin, which is decided when they are opened and by no call after it.
    Place(fn(&Parameters) -> Result<Stage, Refusal>),
    /// Reads the properties with which HDF5 opens files.
    Hdf5(fn(&Parameters) -> Result<Properties, Refusal>),
    /// Reads what files of NetCDF get.
    NetCdf(fn(&Parameters) -> Result<netcdf::Properties, Refusal>),
    /// Keeps small files in a container, by their names; only a mount hears of all names.
    Names(fn(&Parameters) -> Result<DeferClose, Refusal>),
}

impl Build {
    /// What is made hears calls of POSIX; a stage of another layer, or of another place, lets them all pass.
    pub fn strategy(self, parameters: &Parameters) -> Result<Box<dyn Strategy>, Refusal> {
        match self {
            Build::Posix(build) => return build(parameters),
            Build::MpiIo(build) => _ = build(parameters)?,
            Build::Place(read) => _ = read(parameters)?,
            Build::Hdf5(read) => _ = read(parameters)?,
            Build::NetCdf(read) => _ = read(parameters)?,
            Build::Names(read) => _ = read(parameters)?,
        }
        Ok(Box::new(Null::DEAF))
    }
}

const NULL: Row = Row {
    name: "null",
    summary: "changes nothing; shows what the machinery itself costs",
    usage: "null[:hear=nothing|steps,paths=GLOB,exclude=GLOB]",
    classes: Classes::PLAIN,
    build: Build::Posix(|parameters| Ok(Box::new(Null::parse(parameters)?))),
};

const COUNT: Row = Row {
    name: super::count::NAME,
    summary: "counts the calls that come by, and the bytes they ask for, file by file; told at the end",
    usage: "count[:name=WORD,paths=GLOB,exclude=GLOB]",
    classes: Classes::PLAIN,
    build: Build::Posix(|parameters| Ok(Box::new(Count::parse(parameters)?))),
};

const SEEK_ELIDE: Row = Row {
    name: "seek-elide",
    summary: "keeps file positions itself: seeks cost nothing, seek + transfer becomes one call",
    usage: "seek-elide[:outsiders=none,paths=GLOB,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Metadata,
        interference: Interference::Single,
        state: State::Position,
        owns: &[Owned::Position],
        ..Classes::PLAIN
    },
    build: Build::Posix(|parameters| Ok(Box::new(SeekElide::parse(parameters)?))),
};

const WRITE_BACK: Row = Row {
    name: "write-back",
    summary: "holds small writes back and writes them out sorted, merged and large",
    usage: "write-back[:buffer=1m,largest=16k,age=DURATION,paths=GLOB,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Data,
        interference: Interference::Several,
        state: State::Buffer,
        visibility: Visibility::Run,
        shape: Shape::Joins,
        needs: &[Need::SharedMemory],
        owns: &[Owned::Position, Owned::HeldBytes],
        ..Classes::PLAIN
    },
    build: Build::Posix(|parameters| Ok(Box::new(WriteBack::new(Settings::parse(parameters)?)))),
};

const ALIGN: Row = Row {
    name: "align",
    summary: "cuts and joins writes at the edges of blocks or stripes, and holds ragged ends",
    usage: "align[:block=1m|auto,buffer=4m,age=DURATION,paths=GLOB,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Data,
        interference: Interference::Several,
        state: State::Buffer,
        visibility: Visibility::Run,
        shape: Shape::Cuts,
        needs: &[Need::SharedMemory],
        owns: &[Owned::HeldBytes],
        ..Classes::PLAIN
    },
    build: Build::Posix(|parameters| {
        Ok(Box::new(WriteBack::new(Settings::parse_align(parameters)?)))
    }),
};

const AGGREGATE: Row = Row {
    name: "aggregate",
    summary: "merges what several processes write to one file into large aligned writes",
    usage: "aggregate:paths=GLOB[,block=1m|auto,buffer=64m,age=DURATION,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Data,
        interference: Interference::Several,
        state: State::Buffer,
        visibility: Visibility::Node,
        shape: Shape::Joins,
        needs: &[Need::Mount],
        owns: &[Owned::HeldBytes],
        ..Classes::PLAIN
    },
    build: Build::Posix(|parameters| {
        Ok(Box::new(WriteBack::new(Settings::parse_aggregate(parameters)?)))
    }),
};

const SINGLE_WRITER: Row = Row {
    name: "single-writer",
    summary: "has one thread per node write what processes have handed over to it, in order of offset",
    usage: "single-writer:paths=GLOB[,writers=1,buffer=64m,exclude=GLOB]",
    classes: Classes { shape: Shape::HandsOver, ..AGGREGATE.classes },
    build: Build::Posix(|parameters| {
        Ok(Box::new(WriteBack::new(Settings::parse_single_writer(parameters)?)))
    }),
};

const READ_AHEAD: Row = Row {
    name: "read-ahead",
    summary: "has fetched what streams of reads will come to: by the kernel, or into memory",
    usage: "read-ahead[:window=8m,paths=GLOB,exclude=GLOB] or \
            read-ahead:via=buffer,outsiders=none[,window=256k,largest=16k,paths=GLOB,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Data,
        interference: Interference::Several,
        state: State::Pattern,
        needs: &[Need::PageCache],
        ..Classes::PLAIN
    },
    build: Build::Posix(read_ahead::parse),
};

const PREFETCH: Row = Row {
    name: "prefetch",
    summary: "has the kernel fetch what a recorded run of the program read next, in that order",
    usage: "prefetch:plan=RUN.iot[,window=8m,paths=GLOB,exclude=GLOB]",
    build: Build::Posix(read_ahead::parse_prefetch),
    ..READ_AHEAD
};

const DATA_SIEVE: Row = Row {
    name: "data-sieve",
    summary: "makes one large read of small ones with small holes between them",
    usage: "data-sieve:outsiders=none[,hole=2k,window=256k,largest=16k,paths=GLOB,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Data,
        interference: Interference::Several,
        state: State::Pattern,
        needs: &[Need::SharedMemory],
        ..Classes::PLAIN
    },
    build: Build::Posix(|parameters| Ok(Box::new(window::data_sieve(parameters)?))),
};

const THROTTLE: Row = Row {
    name: "throttle",
    summary: "makes storage slow: each call takes at least a latency, and its bytes at a rate",
    usage: "throttle[:rate=100m,latency=1ms,open=TIME,seek=TIME,paths=GLOB,exclude=GLOB]",
    classes: Classes { interference: Interference::Single, state: State::Timer, ..Classes::PLAIN },
    build: Build::Posix(|parameters| Ok(Box::new(Throttle::parse(parameters)?))),
};

const FSYNC_RELAX: Row = Row {
    name: "fsync-relax",
    summary: "makes one sync for several: joins those of a time, or drops them, or makes one per file and time",
    usage: "fsync-relax:paths=GLOB[,syncs=drop,every=DURATION,exclude=GLOB] or \
            fsync-relax:join=DURATION[,paths=GLOB,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Synchronisation,
        interference: Interference::Single,
        state: State::Timer,
        semantics: Semantics::WeakerDurability,
        owns: &[Owned::Syncs],
        kept_with: Some("join"),
        ..Classes::PLAIN
    },
    build: Build::Posix(|parameters| Ok(Box::new(FsyncRelax::parse(parameters)?))),
};

const SEEK_FREE: Row = Row {
    name: "seek-free",
    summary: "writes one behind the other whatever belongs elsewhere: the bound of a device; destroys the file",
    usage: "seek-free:paths=GLOB[,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Both,
        interference: Interference::Several,
        state: State::Position,
        semantics: Semantics::Destroyed,
        owns: &[Owned::Position, Owned::Placement],
        ..Classes::PLAIN
    },
    build: Build::Posix(|parameters| {
        refuse_all(parameters)?;
        Ok(Box::<SeekFree>::default())
    }),
};

const STAGE: Row = Row {
    name: "stage",
    summary: "has new files written to a fast place, and moves them home when they are closed",
    usage: "stage:to=DIR,paths=GLOB[,spare=64m,rate=BYTES,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Both,
        interference: Interference::Opening,
        state: State::Container,
        visibility: Visibility::Moved,
        needs: &[Need::Agent, Need::SecondPlace],
        owns: &[Owned::Placement],
        ..Classes::PLAIN
    },
    build: Build::Place(Stage::parse),
};

const DEFER_CLOSE: Row = Row {
    name: "defer-close",
    summary: "keeps new small files in one container, and makes them for real after the program, or when asked",
    usage: "defer-close:paths=GLOB[,largest=1m,memory=1g,exclusive=yes,unpack=end|background|never,to=DIR,exclude=GLOB]",
    classes: Classes {
        scope: Scope::Both,
        interference: Interference::Opening,
        state: State::Container,
        visibility: Visibility::Unpacked,
        shape: Shape::Joins,
        needs: &[Need::Agent, Need::Mount],
        owns: &[Owned::Placement],
        ..Classes::PLAIN
    },
    build: Build::Names(DeferClose::parse),
};

const CRUEL_CLASSES: Classes = Classes {
    scope: Scope::Data,
    interference: Interference::Single,
    state: State::Sequence,
    is_cruel: true,
    ..Classes::PLAIN
};

const DELAY: Row = Row {
    name: "delay",
    summary: "for tests: every call begins late",
    usage: "delay[:time=1ms,paths=GLOB,exclude=GLOB]",
    classes: Classes { state: State::Timer, ..CRUEL_CLASSES },
    build: Build::Posix(|parameters| Ok(Box::new(Cruel::of_one_kind(Trouble::Delay, parameters)?))),
};

const FAIL: Row = Row {
    name: "fail",
    summary: "for tests: fails transfers, at random by seed",
    usage: "fail[:percent=10,errno=28,seed=1,paths=GLOB,exclude=GLOB]",
    classes: CRUEL_CLASSES,
    build: Build::Posix(|parameters| Ok(Box::new(Cruel::of_one_kind(Trouble::Fail, parameters)?))),
};

const SHORT: Row = Row {
    name: "short",
    summary: "for tests: cuts transfers short, at random by seed",
    usage: "short[:percent=33,seed=1,paths=GLOB,exclude=GLOB]",
    classes: CRUEL_CLASSES,
    build: Build::Posix(|parameters| Ok(Box::new(Cruel::of_one_kind(Trouble::Short, parameters)?))),
};

const CRUEL: Row = Row {
    name: "cruel",
    summary: "for tests: delays, cuts transfers short and fails them, at random by seed",
    usage: "cruel[:seed=1,short=PERCENT,fail=PERCENT,errno=28,delay=MICROSECONDS,paths=GLOB]",
    classes: CRUEL_CLASSES,
    build: Build::Posix(|parameters| Ok(Box::new(Cruel::parse(parameters)?))),
};

const HINTS: Row = Row {
    name: "hints",
    summary: "adds hints to those a program gives the MPI library with files; told what became of them",
    usage: "hints:KEY=VALUE[,KEY=VALUE,paths=GLOB,exclude=GLOB]",
    classes: Classes {
        layer: Layer::MpiIo,
        scope: Scope::Metadata,
        interference: Interference::Opening,
        needs: &[Need::Mpi],
        owns: &[Owned::Hints],
        ..Classes::PLAIN
    },
    build: Build::MpiIo(|parameters| Ok(MpiIoStage::Hints(Hints::parse(parameters)?))),
};

const DEMOTE: Row = Row {
    name: "demote",
    summary: "makes a collective access whose ranks' parts are apart independent calls, without exchange",
    usage: "demote[:when=apart|never,paths=GLOB,exclude=GLOB]",
    classes: Classes {
        layer: Layer::MpiIo,
        scope: Scope::Data,
        needs: &[Need::Mpi],
        owns: &[Owned::Exchange],
        ..Classes::PLAIN
    },
    build: Build::MpiIo(|parameters| Ok(MpiIoStage::Demote(Demote::parse(parameters)?))),
};

const DEMOTE_CRUEL: Row = Row {
    name: "demote-cruel",
    summary: "for tests: makes collective accesses independent calls at random by seed, interleaved or not",
    usage: "demote-cruel[:seed=1,paths=GLOB,exclude=GLOB]",
    classes: Classes { state: State::Sequence, is_cruel: true, ..DEMOTE.classes },
    build: Build::MpiIo(|parameters| Ok(MpiIoStage::Demote(Demote::parse_cruel(parameters)?))),
};

const COLLECT: Row = Row {
    name: "collect",
    summary: "holds a rank's independent writes, which go out together at the next call that all ranks make",
    usage: "collect:paths=GLOB[,buffer=16m,independent=1m,slow=20us,when=slow|never,exclude=GLOB]",
    classes: Classes {
        layer: Layer::MpiIo,
        scope: Scope::Data,
        interference: Interference::Several,
        state: State::Buffer,
        semantics: Semantics::LateVisibility,
        visibility: Visibility::Joint,
        shape: Shape::Joins,
        needs: &[Need::Mpi],
        owns: &[Owned::HeldBytes],
        ..Classes::PLAIN
    },
    build: Build::MpiIo(|parameters| Ok(MpiIoStage::Collect(Collect::parse(parameters)?))),
};

const COLLECT_CRUEL: Row = Row {
    name: "collect-cruel",
    summary: "for tests: holds, passes, writes out and exchanges independent writes at random by seed",
    usage: "collect-cruel[:seed=1,buffer=64k,paths=GLOB,exclude=GLOB]",
    classes: Classes { is_cruel: true, ..COLLECT.classes },
    build: Build::MpiIo(|parameters| Ok(MpiIoStage::Collect(Collect::parse_cruel(parameters)?))),
};

const H5: Row = Row {
    name: "h5",
    summary: "has HDF5 open files with other properties: where objects begin, how large its buffers are",
    usage: "h5:alignment=1m[,threshold=64k,meta-block=1m,chunk-cache=64m,coll-metadata=yes,paths=GLOB,exclude=GLOB], or without alignment",
    classes: Classes {
        layer: Layer::Hdf5,
        scope: Scope::Metadata,
        interference: Interference::Opening,
        needs: &[Need::Hdf5],
        owns: &[Owned::Properties],
        ..Classes::PLAIN
    },
    build: Build::Hdf5(Properties::parse),
};

const NC: Row = Row {
    name: "nc",
    summary: "gives files of NetCDF a larger cache for chunks, room behind the header, or no fill values",
    usage: "nc:chunk-cache=64m[,header-pad=64k,nofill=yes,paths=GLOB,exclude=GLOB], or without chunk-cache",
    classes: Classes {
        layer: Layer::NetCdf,
        scope: Scope::Metadata,
        interference: Interference::Opening,
        semantics: Semantics::UndefinedBytes,
        given_up_with: Some((netcdf::NO_FILL, "yes")),
        needs: &[Need::NetCdf],
        owns: &[Owned::NetCdfProperties],
        ..Classes::PLAIN
    },
    build: Build::NetCdf(netcdf::Properties::parse),
};

/// All strategies.
pub struct Catalog;

impl Catalog {
    /// Every row, in the order of documentation.
    pub const ROWS: &[Row] = &[
        NC,
        H5,
        COLLECT,
        COLLECT_CRUEL,
        HINTS,
        DEMOTE,
        DEMOTE_CRUEL,
        NULL,
        COUNT,
        SEEK_ELIDE,
        WRITE_BACK,
        ALIGN,
        AGGREGATE,
        SINGLE_WRITER,
        READ_AHEAD,
        PREFETCH,
        DATA_SIEVE,
        FSYNC_RELAX,
        SEEK_FREE,
        STAGE,
        DEFER_CLOSE,
        THROTTLE,
        DELAY,
        FAIL,
        SHORT,
        CRUEL,
    ];

    /// The row of that name.
    pub fn find(name: &str) -> Result<&'static Row, Refusal> {
        Self::ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::ROWS.iter().map(|row| row.name).collect();
            let is_stack = name.contains('+') && name.split('+').all(|it| names.contains(&it));
            Refusal {
                message: format!("there is no strategy `{name}`"),
                hint: match is_stack {
                    true => format!("write a stack as `{}`", name.replace('+', " + ")),
                    false => format!("choose from {}; see `iolab strategies`", names.join(", ")),
                },
            }
        })
    }
}

/// For a strategy without parameters of its own.
fn refuse_all(parameters: &Parameters) -> Result<(), Refusal> {
    match parameters.first() {
        None => Ok(()),
        Some((key, _)) => Err(unknown(key, "paths, exclude")),
    }
}
