//! Traces of other tools: strace's text, lines of DFTracer, texts of archives of OTF2 and of Recorder, projects of HDTrace with their XML.

use crate::words::text;
use crate::{Target, kept, seeds};
use iolab_trace::import::hdtrace::{Project, TraceFile};
use iolab_trace::import::{Dftracer, Otf2, Recorder, strace};

/// Stands between a project and its trace files in one input.
const CUT: &[u8] = b"\x00";
const CALLS: usize = 12;

pub(crate) const STRACE: Target = Target {
    name: "strace",
    seeds: || {
        let sample = seeds::file("samples/traces/strace/fork_and_thread.txt");
        let lines: Vec<_> = sample.split_inclusive(|&byte| byte == b'\n').collect();
        lines.chunks(10).map(<[&[u8]]>::concat).chain([sample.clone()]).collect()
    },
    bytes_max: 4_096,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match strace(text) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(trace) => kept::keeps(&trace),
        }
    },
};

/// Compression is a library's: lines are what is read.
pub(crate) const DFTRACER: Target = Target {
    name: "dftracer",
    seeds: || vec![DFTRACER_LINES.as_bytes().to_vec()],
    bytes_max: 4_096,
    run: |bytes| {
        let mut run = Dftracer::default();
        match run.file(bytes).and_then(|()| run.finish()) {
            Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
            Ok(trace) => kept::keeps(&trace),
        }
    },
};

pub(crate) const OTF2: Target = Target {
    name: "otf2",
    seeds: || {
        let sample = seeds::file("samples/otf2/small.txt");
        let text = String::from_utf8_lossy(&sample);
        let (definitions, events) = text.split_once("=== Events").expect("a sample");
        let lines: Vec<_> = events.split_inclusive('\n').collect();
        let part = |lines: &[&str]| format!("{definitions}=== Events\n{}", lines.concat());
        lines.chunks(8).map(|lines| part(lines).into_bytes()).chain([sample.clone()]).collect()
    },
    bytes_max: 12_000,
    run: |bytes| {
        let mut archive = Otf2::default();
        match archive.text(bytes).and_then(|()| archive.finish()) {
            Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
            Ok(trace) => kept::keeps(&trace),
        }
    },
};

pub(crate) const RECORDER: Target = Target {
    name: "recorder",
    seeds: || vec![RECORDER_LINES.as_bytes().to_vec()],
    bytes_max: 4_096,
    run: |bytes| {
        let mut run = Recorder::default();
        match run.rank(3, bytes).and_then(|()| run.finish()) {
            Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
            Ok(trace) => kept::keeps(&trace),
        }
    },
};

pub(crate) const HDTRACE_PROJECT: Target = Target {
    name: "hdtrace-project",
    seeds: || {
        let sample = seeds::file("samples/traces/hdtrace/partdiff-2009/partdiff-par.proj");
        vec![SMALL.as_bytes().to_vec(), shortened(&sample)]
    },
    bytes_max: 6_000,
    run: |bytes| match Project::parse("a.proj", bytes) {
        Err(error) => assert!(!error.what.is_empty()),
        Ok(project) => {
            let names = project.trace_names("a");
            let calls = b"<Program timeAdjustment='1'>\n<Init time='1.5' end='2'/>\n</Program>\n";
            let file = |name| TraceFile { name, bytes: calls };
            let files: Vec<_> = names.iter().map(|name| file(name)).collect();
            match project.import(&files) {
                Err(error) => assert!(!error.what.is_empty()),
                Ok(trace) => kept::keeps(&trace),
            }
        }
    },
};

/// Trace files under the small project.
pub(crate) const HDTRACE: Target = Target {
    name: "hdtrace",
    seeds: || {
        let traces = seeds::files(&["samples/traces/hdtrace/partdiff-2009"], &["trc"]);
        let mut all: Vec<_> = traces.iter().flat_map(|trace| some_calls(trace)).collect();
        all.push(VIEWS.as_bytes().to_vec());
        all
    },
    bytes_max: 6_000,
    run: |bytes| {
        let project = Project::parse("small.proj", SMALL.as_bytes()).expect("a project");
        let mut parts = bytes.splitn(2, |byte| CUT.contains(byte));
        let mut part =
            || TraceFile { name: "a.trc", bytes: parts.next().unwrap_or(VIEWS.as_bytes()) };
        match project.import(&[part(), part()]) {
            Err(error) => assert!(!error.what.is_empty()),
            Ok(trace) => kept::keeps(&trace),
        }
    },
};

/// The beginning, the middle and the end of a trace file, each as one.
fn some_calls(trace: &[u8]) -> Vec<Vec<u8>> {
    let lines: Vec<_> = trace.split_inclusive(|&byte| byte == b'\n').collect();
    let top = |line: &&[u8]| line.starts_with(b"<") && !line.starts_with(b"</");
    let begins: Vec<usize> = (1..lines.len()).filter(|&at| top(&lines[at])).collect();
    let from = |part: usize| {
        let first = begins.len() * part / 3;
        let (begin, end) = (begins[first], begins[(first + CALLS).min(begins.len() - 1)]);
        [lines[0], &lines[begin..end].concat(), b"</Program>\n"].concat()
    };
    (0..3).map(from).collect()
}

/// A project with a few of its elements of each kind.
fn shortened(project: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(project);
    let mut last = ("", 0);
    let kept = text.split_inclusive('\n').filter(|line| {
        let kind = line.trim().split([' ', '>']).next().unwrap_or_default();
        last = if kind == last.0 { (kind, last.1 + 1) } else { (kind, 0) };
        last.1 < 3
    });
    kept.collect::<String>().into_bytes()
}

const SMALL: &str = r#"<?xml version="1.0"?>
<Application name="small">
 <FileList><File name="f"><InitialSize>1K</InitialSize></File></FileList>
 <Topology>
  <Level type="Hostname"><Level type="Rank"><Level type="Thread"/></Level></Level>
  <Node name="h"><Node name="0"><Node name="0" /></Node><Node name="1"><Node name="0" /></Node></Node>
 </Topology>
 <CommunicatorList><Communicator name="WORLD"><Rank global="0" local="0" cid="0"/><Rank global="1" local="1" cid="0"/></Communicator>
 </CommunicatorList>
 <Datatypes><Rank name="0" thread="0">
  <NAMED id="0" name="MPI_INT" />
  <VECTOR id="1" name="" count="3" blocklength="2" stride="4" oldType="0" />
  <CONTIGUOUS id="2" name="" count="5" oldType="0" />
  <STRUCT id="3" name="" count="2" >
   <Type id="0" displacement="0" blocklen="1"/><Type id="0" displacement="8" blocklen="1"/>
  </STRUCT>
  <DARRAY id="4" name="" />
 </Rank></Datatypes>
</Application>"#;

const VIEWS: &str = "<Program timeAdjustment='100.5'>
<File_open cid='0' name='f' flags='2' fid='7' time='1.0' end='1.1'/>
<File_set_view fid='7' offset='4' etid='0' filetid='1' time='1.2' end='1.3'/>
<File_write fid='7' offset='3' size='40' count='10' tid='0' time='1.4' end='1.5'/>
<Nested>
 <Isend toRank='1' toTag='3' cid='0' rid='9' size='10' time='1.61' end='1.62'/>
 <Waitall time='1.63' end='1.64'><For rid='9'/></Waitall>
</Nested>
<File_write_all fid='7' offset='3' size='40' count='10' tid='0' time='1.6' end='1.7'/>
<File_close fid='7' time='1.8' end='1.9'/>
</Program>
";

const DFTRACER_LINES: &str = r#"[
{"id":1,"name":"start","cat":"dftracer","pid":7,"tid":7,"ts":100,"dur":0,"ph":"X","args":{"hhash":"h1","cmd_hash":"c1","ppid":3}}
{"id":2,"name":"open64","cat":"POSIX","pid":7,"tid":7,"ts":100,"dur":5,"ph":"X","args":{"hhash":"h1","fhash":"ab","flags":66,"ret":5}}
{"id":3,"name":"write","cat":"POSIX","pid":7,"tid":7,"ts":"110","dur":"5","ph":"X","args":{"hostname":"n","fname":"/f","count":"64","ret":"64","fd":5}}
{"id":4,"name":"lseek64","cat":"POSIX","pid":7,"tid":7,"ts":120,"dur":1,"ph":"X","args":{"hhash":"h1","fhash":"ab","fd":5,"offset":-4,"whence":1,"ret":60}}
{"id":5,"name":"fread","cat":"STDIO","pid":7,"tid":8,"ts":130,"dur":1,"ph":"X","args":{"hhash":"h1","fhash":"cd","size":4,"count":2,"ret":1}}
{"id":6,"name":"FH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"/d/a","value":"ab"}}
{"id":7,"name":"PR","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"rank","value":"0"}}
]"#;

const RECORDER_LINES: &str = "\
0.000100 0.000200 MPI_File_open 0 1 ( MPI_COMM_WORLD /data/s 9 0x1 0-0 )
0.000120 0.000180 open64 1 0 ( /data/s 66 420 )
0.000300 0.000500 MPI_File_write_at_all 0 1 ( 0-0 8192 0x7ff 512 MPI_DOUBLE [0,0,0] )
0.000350 0.000450 pwrite64 1 0 ( /data/s 0x7ff 4096 8192 )
0.000800 0.000900 MPI_File_close 0 1 ( 0-0 )
0.001600 0.001700 lseek 0 0 ( /data/s -10 1 )
0.001800 0.001900 readv 0 0 ( /data/s 30 2 )
0.002200 0.002300 fopen 0 0 ( /data/b w+ )
0.002400 0.002500 fwrite 0 0 ( 0x7ff 8 16 /data/b )
0.002600 0.002700 ftruncate 0 0 ( /data/b 5 )
";
