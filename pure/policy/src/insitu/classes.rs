//! Classes of a strategy, as data with closed types: what may stand with what (`stacking.rs`) and what has
//! to be asked for are decided from these, never from a name.
//! Ancestor: the classification of strategies by Schmidtke 2017, table 2.

use std::fmt;

/// An enumeration whose members have a word each, for people and JSON.
macro_rules! closed {
    ($(#[$attribute:meta])* $name:ident { $($(#[$of_member:meta])* $member:ident $word:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$of_member])* $member,)* }

        impl $name {
            /// As people read it.
            pub fn word(self) -> &'static str {
                match self { $($name::$member => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

closed! {
    /// Whose calls it hears.
    Layer {
        /// System calls and streams.
        Posix "posix",
        /// `MPI_File_…`.
        MpiIo "mpiio",
        /// HDF5.
        Hdf5 "hdf5",
        /// NetCDF and PnetCDF.
        NetCdf "netcdf",
    }
}

closed! {
    /// What it changes.
    Scope {
        /// No call is another one below.
        Nothing "none",
        /// Transfers.
        Data "data",
        /// Seeks, sizes, names.
        Metadata "metadata",
        /// Transfers, seeks, sizes and names.
        Both "data and metadata",
        /// Syncs.
        Synchronisation "synchronisation",
    }
}

closed! {
    /// Which calls have an influence on what becomes of others.
    Interference {
        /// Each call is by itself.
        None "none",
        /// A call on the one after it.
        Single "single",
        /// Calls on any later ones.
        Several "several",
        /// An open or close on all that follow.
        Opening "open/close",
    }
}

closed! {
    /// What it remembers from call to call.
    State {
        /// Nothing.
        None "none",
        /// File positions.
        Position "position",
        /// Bytes.
        Buffer "buffer",
        /// How a program goes through a file.
        Pattern "pattern",
        /// Names of files.
        Names "names",
        /// Where files lie in another one.
        Container "container",
        /// When something was, or is due.
        Timer "timer",
        /// Where it is in a sequence of random numbers.
        Sequence "random sequence",
    }
}

closed! {
    /// What of the file's meaning is as without it.
    Semantics {
        /// All: same bytes, same results.
        Kept "kept",
        /// A crash of the machine may take what was synced.
        WeakerDurability "weaker durability",
        /// A read may miss what another program has just written.
        MayBeOld "may be old",
        /// Other processes of the program may miss what a write has returned for until a call that all of them
        /// make, and a process that dies before takes it along.
        LateVisibility "late visibility",
        /// Elements that a program has not written read as anything.
        UndefinedBytes "undefined bytes",
        /// Nothing: the file holds other bytes.
        Destroyed "destroyed",
    }
}

closed! {
    /// Who sees a written byte when the write has returned.
    Visibility {
        /// Everybody.
        AtOnce "at once",
        /// Processes of the run; others once it was written out.
        Run "run",
        /// The process; others after the next call that all processes make.
        Joint "joint call",
        /// Processes of the node; others after a sync or close.
        Node "node",
        /// Others once the file has been moved home.
        Moved "moved",
        /// Others once the file has been unpacked.
        Unpacked "unpacked",
    }
}

closed! {
    /// What must be there beside the file.
    Need {
        /// Memory that the processes of a run share.
        SharedMemory "shared memory of the run",
        /// A process that outlives the program's.
        Agent "agent",
        /// A mount, whose server hears the calls of all processes of the node and outlives each of them.
        Mount "mount",
        /// Another place for bytes.
        SecondPlace "second place",
        /// A program of MPI.
        Mpi "MPI",
        /// A program of HDF5.
        Hdf5 "HDF5",
        /// A program of NetCDF or PnetCDF.
        NetCdf "NetCDF",
        /// A page cache below.
        PageCache "page cache",
    }
}

closed! {
    /// What no other stage of the same file may have in its hands as well.
    Owned {
        /// Where the next transfer without an offset goes.
        Position "file positions",
        /// Bytes that a write has returned for and that are not below yet.
        HeldBytes "held bytes",
        /// Where bytes of the file lie.
        Placement "placement",
        /// When syncs happen.
        Syncs "syncs",
        /// What the MPI library is advised to do.
        Hints "hints",
        /// With which properties HDF5 opens files.
        Properties "properties of files",
        /// The same of NetCDF.
        NetCdfProperties "properties of NetCDF files",
        /// Who does what for whom in a collective access.
        Exchange "collective accesses",
    }
}

closed! {
    /// What becomes of the extents of transfers.
    Shape {
        /// They stay as they are.
        Same "same",
        /// Several become one.
        Joins "joins",
        /// One becomes several.
        Cuts "cuts",
        /// Several become one, which goes out when their calls are over.
        HandsOver "hands over",
    }
}

impl Layer {
    /// How many layers stand above it: a stack is sorted by this.
    pub fn depth(self) -> u32 {
        match self {
            Layer::NetCdf => 0,
            Layer::Hdf5 => 1,
            Layer::MpiIo => 2,
            Layer::Posix => 3,
        }
    }
}

/// All classes of one strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Whose calls it hears.
    pub layer: Layer,
    /// What it changes.
    pub scope: Scope,
    /// Which calls have an influence on others.
    pub interference: Interference,
    /// What it remembers.
    pub state: State,
    /// What of the file's meaning it keeps.
    pub semantics: Semantics,
    /// The parameter with which it keeps all of it, where it gives some up.
    pub kept_with: Option<&'static str>,
    /// The parameter and its value with which alone it gives some of it up.
    pub given_up_with: Option<(&'static str, &'static str)>,
    /// Who sees written bytes.
    pub visibility: Visibility,
    /// What becomes of transfers' extents.
    pub shape: Shape,
    /// What must be there.
    pub needs: &'static [Need],
    /// What is in its hands alone.
    pub owns: &'static [Owned],
    /// For tests only: it makes trouble on purpose, of kinds the system makes, too.
    pub is_cruel: bool,
}

impl Classes {
    /// Hears calls of POSIX and changes nothing. Rows say where they differ.
    pub const PLAIN: Classes = Classes {
        layer: Layer::Posix,
        scope: Scope::Nothing,
        interference: Interference::None,
        state: State::None,
        semantics: Semantics::Kept,
        kept_with: None,
        given_up_with: None,
        visibility: Visibility::AtOnce,
        shape: Shape::Same,
        needs: &[],
        owns: &[],
        is_cruel: false,
    };

    /// Whether a program sees the same file and the same results as without it.
    pub fn is_honest(&self) -> bool {
        self.semantics == Semantics::Kept && !self.is_cruel
    }

    /// Whether it has this in its hands.
    pub fn owns(&self, what: Owned) -> bool {
        self.owns.contains(&what)
    }

    /// Name and words of each class, in the order of documentation.
    pub fn words(&self) -> [(&'static str, String); 10] {
        let list = |words: Vec<&str>| match words.is_empty() {
            true => "–".to_owned(),
            false => words.join(", "),
        };
        [
            ("layer", self.layer.to_string()),
            ("scope", self.scope.to_string()),
            ("interference", self.interference.to_string()),
            ("state", self.state.to_string()),
            ("semantics", self.semantics.to_string()),
            ("visibility", self.visibility.to_string()),
            ("shape", self.shape.to_string()),
            ("needs", list(self.needs.iter().map(|it| it.word()).collect())),
            ("owns", list(self.owns.iter().map(|it| it.word()).collect())),
            ("cruel", if self.is_cruel { "yes" } else { "no" }.to_owned()),
        ]
    }
}
