//! Programs that nobody here wrote and that many depend on, as their distribution ships them: each
//! runs bare and under iolab, and must leave the same files, say the same and end the same.
//!
//! They start whole systems (a database server, an editor), so they are ignored by default;
//! `make test-long` installs the packages and runs them. The scripts remove what differs from run
//! to run by nature (logs with times, sockets) and print what the comparison of files does not see:
//! times, modes, owners and extended attributes.

use super::bench::{Way, need, same_everywhere};

const WAYS: &[Way] = &[
    Way::Record,
    Way::Run(&["null"]),
    Way::Run(&["seek-elide"]),
    Way::Run(&["write-back"]),
    Way::Run(&["write-back:buffer=64k,largest=4k"]),
];

/// Prints what `stat` knows of every file below the working directory and programs can set.
const LIST: &str = "list() { find \"$1\" ! -type d -printf '%P %m %U %G %s %TY-%Tm-%Td %TH:%TM:%TS\\n' | LC_ALL=C sort; }\n";

fn check(script: &str, needs: &[(&str, &str)]) {
    needs.iter().for_each(|(tool, package)| need(tool, package));
    same_everywhere(&format!("{LIST}{script}"), None, WAYS);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn node_writes_by_every_way_it_has() {
    let script = r#"cat > program.js <<'END'
const fs = require('fs'), path = require('path'), child = require('child_process'), net = require('net');
fs.writeFileSync('sync', 'a'.repeat(100)); fs.appendFileSync('sync', 'b'.repeat(50));
const fd = fs.openSync('positions', 'w+');
for (let i = 0; i < 500; i++) fs.writeSync(fd, `record ${i}\n`);
fs.writeSync(fd, 'XX', 3); fs.ftruncateSync(fd, 4000); fs.fsyncSync(fd); console.log(fs.fstatSync(fd).size);
fs.futimesSync(fd, 1000000000, 1000000000); fs.fchmodSync(fd, 0o640); fs.closeSync(fd);
const stream = fs.createWriteStream('stream');
for (let i = 0; i < 3000; i++) stream.write(`${i} of a stream\n`);
stream.end(async () => {
  console.log(fs.statSync('stream').size);
  await fs.promises.writeFile('promise', 'p'.repeat(70000));
  await fs.promises.copyFile('promise', 'copied');
  const handle = await fs.promises.open('handle', 'a+');
  for (let i = 0; i < 200; i++) await handle.write(`line ${i}\n`);
  console.log((await handle.stat()).size); await handle.close();
  const server = net.createServer(s => s.end('from the socket')).listen('socket', () => {
    net.connect('socket').on('data', d => { fs.appendFileSync('net', d); console.log(String(d)); })
      .on('close', () => { server.close();
        fs.writeFileSync('before', 'x'); console.log(child.execSync('cat before; echo y >> before; wc -c < before').toString());
        const out = fs.openSync('child', 'w'); fs.writeSync(out, 'parent first\n');
        child.spawnSync('sh', ['-c', 'echo from the child'], { stdio: ['ignore', out, 'inherit'] });
        fs.writeSync(out, 'parent last\n'); fs.closeSync(out); process.exitCode = 3; });
  });
});
END
node program.js"#;
    check(script, &[("node", "nodejs")]);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn npm_installs_a_package() {
    let script = r#"mkdir -p library app && cd library
        echo '{"name":"library","version":"1.2.3","main":"index.js","bin":{"library-tool":"tool.js"}}' > package.json
        echo 'module.exports = () => "library works"' > index.js; (echo '#!/usr/bin/env node'; echo 'console.log(require("./index.js")())') > tool.js
        seq 1 20000 > table.txt; npm pack --silent 2>&1; cd ../app
        echo '{"name":"app","version":"1.0.0","private":true}' > package.json
        npm install --offline --no-audit --no-fund --no-update-notifier --silent ../library/library-1.2.3.tgz; echo "npm: $?"
        node -e 'console.log(require("library")())'; npx --offline library-tool; wc -l < node_modules/library/table.txt; npm ls --offline
        cd ..; rm -rf .npm .cache .config; tar -xOf library/library-1.2.3.tgz package/table.txt | md5sum; md5sum < library/library-1.2.3.tgz > sum; rm library/*.tgz"#;
    check(script, &[("node", "nodejs"), ("npm", "npm")]);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn neovim_writes_a_file() {
    let script = r#"seq 1 5000 > text; export XDG_CONFIG_HOME=$PWD/c XDG_DATA_HOME=$PWD/d XDG_STATE_HOME=$PWD/s XDG_CACHE_HOME=$PWD/k
        nvim --headless -u NONE -c '%s/9/nine/g' -c 'w' -c 'w other' -c 'qa!' text 2>&1; echo "nvim: $?"
        nvim --headless -u NONE -c 'set backup backupdir=. undofile undodir=.' -c 'normal Goappended' -c 'wq' text 2>&1; echo "nvim: $?"
        nvim --headless -u NONE -c 'call writefile(["a","b"], "list")' -c 'call writefile(["c"], "list", "a")' -c 'cq 7' 2>&1; echo "nvim: $?"
        wc -l text other list; stat -c %s .text.un~; rm -rf c d s k .text.un~ # which keeps the times of changes"#;
    check(script, &[("nvim", "neovim")]);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn imagemagick_writes_every_format() {
    // By its full name: `convert` may be another program earlier on the path.
    let script = r#"c=/usr/bin/convert; $c -size 300x200 gradient:red-blue -depth 8 +set date:create +set date:modify picture.ppm
        for format in tiff png gif bmp jpg pgm pcx tga miff xpm ico; do
            $c picture.ppm +set date:create +set date:modify -define png:exclude-chunks=date,time -define tiff:software= out.$format || echo "$format failed"
            /usr/bin/identify -format '%m %wx%h %#\n' out.$format; done
        $c picture.ppm \( +clone -flip \) \( +clone -negate \) -compress lzw pages.tiff && /usr/bin/identify -format '%m %wx%h %#\n' pages.tiff
        $c pages.tiff -adjoin again-%d.ppm; ls again-*; rm -f out.miff"#;
    check(script, &[("identify", "imagemagick")]);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn lua_ruby_and_perl_seek_and_spawn() {
    let script = r#"lua5.4 -e 'local f = io.open("lua", "w+"); for i = 1, 3000 do f:write(i, "\n") end
            print(f:seek("end")); f:seek("set", 5); f:write("XYZ"); f:seek("set", 0); print(#f:read("a")); f:setvbuf("no"); f:write("tail")
            local p = io.popen("wc -c < lua; echo from a pipe >> lua"); print(p:read("a")); p:close(); f:seek("end"); f:write("last"); f:close(); print(os.execute("wc -c < lua"))'
        ruby -e 'File.open("ruby", "w+") { |f| 2000.times { |i| f.puts i }; f.seek(0, IO::SEEK_END); puts f.pos; f.flush; puts File.size("ruby"); system("echo shell >> ruby"); f.seek(-3, IO::SEEK_END); puts f.read; f.truncate(50) }
            fork { File.write("forked", "child" * 100) }; Process.wait; puts File.read("forked").size; IO.copy_stream("forked", "stream"); File.utime(0, 0, "stream"); exit 5'; echo $?
        perl -e 'open(F, "+>", "perl"); print F "$_\n" for 1..3000; if (my $p = fork) { waitpid($p, 0) } else { print F "child\n"; exit 0 } seek(F, 0, 2); print tell(F), "\n"; print F "end"; close F; utime 5, 5, "perl"; chmod 0600, "perl"; print -s "perl", "\n"; open(P, "|cat >> piped"); print P "x" x 9999; close P; print -s "piped", "\n"'
        touch -d @0 lua ruby forked piped; list ."#;
    check(script, &[("lua5.4", "lua5.4"), ("ruby", "ruby"), ("perl", "perl")]);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn archivers_keep_times_modes_and_attributes() {
    let script = r#"mkdir tree; seq 1 9000 > tree/numbers; echo small > tree/small; printf '#!/bin/sh\necho x\n' > tree/script; chmod 4755 tree/script; chmod 600 tree/small
        ln -s small tree/link; ln tree/small tree/hard; touch -d @1000000000.25 tree/numbers; touch -d @1100000000 tree/small; touch -d @1200000000 tree/script
        setfattr -n user.note -v kept tree/numbers 2>/dev/null; touch -hd @5 tree/link; touch -d @1300000000 tree
        tar --xattrs -cf a.tar tree && mkdir x && tar --xattrs -C x -xpf a.tar && list x && getfattr -R -d x 2>/dev/null
        cp -a tree copied && list copied; rsync -a tree/ synced/ && list synced; install -m 751 -p tree/numbers installed && stat -c '%a %Y' installed
        tar -cf b.tar.xz -J tree && xz -k -T1 a.tar && touch -d @1400000000 a.tar.xz && unxz -kf a.tar.xz && stat -c '%Y %s' a.tar && xz -t b.tar.xz && echo tested
        gzip -k tree/numbers -c > n.gz; touch -d @1500000000 n.gz; gunzip -k n.gz; stat -c '%Y %s' n; zstd -q tree/numbers -o n.zst; stat -c '%Y %a' n.zst; bzip2 -k n; stat -c '%Y %a' n.bz2
        TZ=UTC zip -qry z.zip tree && mkdir z && TZ=UTC unzip -qo z.zip -d z && rm z/tree/link && list z # zip keeps no times of links
        mkdir -p deb/DEBIAN deb/usr; printf 'Package: t\nVersion: 1\nArchitecture: all\nMaintainer: a\nDescription: b\n' > deb/DEBIAN/control; cp -a tree/numbers tree/script deb/usr; find deb -exec touch -hd @1600000000 {} +
        SOURCE_DATE_EPOCH=1600000000 dpkg-deb -b --root-owner-group deb t.deb >/dev/null && mkdir out && dpkg-deb -x t.deb out && list out && dpkg-deb -c t.deb | md5sum
        rm -f *.tar *.xz *.zip"#;
    check(
        script,
        &[
            ("tar", "tar"),
            ("xz", "xz-utils"),
            ("rsync", "rsync"),
            ("zip", "zip"),
            ("unzip", "unzip"),
            ("zstd", "zstd"),
            ("bzip2", "bzip2"),
            ("dpkg-deb", "dpkg"),
            ("setfattr", "attr"),
        ],
    );
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn python_writes_between_its_children() {
    let script = r#"cat > program.py <<'END'
import os, subprocess, multiprocessing, tempfile, shutil, sqlite3, logging, csv, gzip, tarfile
f = open("text", "w")
for i in range(50):
    f.write(f"line {i}\n" * 20)
    subprocess.run(["true"]); f.write("between\n")
    if i % 10 == 0: subprocess.Popen(["sh", "-c", "exit 0"], close_fds=True).wait(); os.system("true"); os.popen("echo x").read()
f.write("last\n"); f.close()
fd = os.open("shared", os.O_CREAT | os.O_RDWR)
os.write(fd, b"parent\n"); subprocess.run(["sh", "-c", f"echo child >&{fd}"], pass_fds=[fd]); os.write(fd, b"again\n"); os.close(fd)
def work(n):
    with open(f"worker.{n}", "w") as g: g.write(str(n) * 1000)
    return os.path.getsize(f"worker.{n}")
with multiprocessing.Pool(2) as pool: print(pool.map(work, range(8)))
logging.basicConfig(filename="log", format="%(message)s"); [logging.warning("message %d", i) for i in range(500)]
print(os.path.getsize("log"), sum(1 for _ in open("log")))
again = open(f"/proc/self/fd/{os.open('log', os.O_WRONLY | os.O_APPEND)}", "a"); again.write("by another name\n"); again.close(); print(os.path.getsize("log"))
with gzip.GzipFile("z.gz", "wb", mtime=0) as z: z.write(b"q" * 100000)
with open("own", "wb", buffering=100) as h:
    for i in range(1000): h.write(b"%d " % i)
    print(os.stat("own").st_size // 100 > 30, os.path.exists("own")); h.flush(); print(os.stat(h.fileno()).st_size)
db = sqlite3.connect("db"); db.execute("create table t(a)"); db.executemany("insert into t values(?)", [(i,) for i in range(999)]); db.commit(); print(db.execute("select sum(a) from t").fetchone()); db.close()
os.utime("own", (1, 2)); os.chmod("own", 0o604); os.setxattr("own", "user.x", b"1")
pid = os.fork()
if pid == 0:
    open("text", "a").write("from a fork\n"); os._exit(0)
os.waitpid(pid, 0); print(os.path.getsize("text")); os.kill(os.getpid(), 10)
END
{ python3 program.py; } 2> /dev/null; echo $?; stat -c '%Y %a' own; getfattr -d own"#;
    check(script, &[("python3", "python3"), ("getfattr", "attr")]);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn sqlite_serves_four_processes() {
    let script = r#"for mode in wal delete persist; do rm -f db*; sqlite3 db "pragma journal_mode=$mode; create table t(p integer, i integer);" > /dev/null
        for p in 1 2 3 4; do (for i in $(seq 1 25); do echo ".timeout 20000
insert into t values($p, $i);"; done | sqlite3 db) & done; wait
        sqlite3 db 'select p, count(*), sum(i) from t group by p; pragma integrity_check'; done; rm -f db*"#;
    check(script, &[("sqlite3", "sqlite3")]);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn redis_finds_everything_again() {
    // By default redis answers before it writes while it syncs in another thread, and loses what it
    // has answered for when it is killed then, bare too; so the server that is killed does not sync.
    let script = r#"start() { redis-server --dir "$PWD" --port 0 --unixsocket "$PWD/s" --appendonly yes --save '' --daemonize no --logfile log "$@" > /dev/null 2>&1 & server=$!
            for i in $(seq 600); do redis-cli -s s ping > /dev/null 2>&1 && break; sleep 0.1; done; }
        start; seq 1 2000 | sed 's/.*/set key& value&/' | redis-cli -s s > replies; sort replies | uniq -c; redis-cli -s s bgrewriteaof > /dev/null; redis-cli -s s save; redis-cli -s s shutdown; wait $server; echo "ended $?"
        start --appendfsync no; redis-cli -s s dbsize; redis-cli -s s get key1234; seq 1 500 | sed 's/.*/incr counter/' | redis-cli -s s | tail -1; kill -9 $server; wait $server 2>/dev/null; start; redis-cli -s s get counter; redis-cli -s s shutdown nosave; wait $server
        rm -rf appendonlydir dump.rdb log s temp*"#;
    check(script, &[("redis-server", "redis-server"), ("redis-cli", "redis-tools")]);
}

#[test]
#[ignore = "starts whole programs of other packages; make test-long"]
fn postgres_loses_no_transaction() {
    // A database server refuses to be root; then it becomes somebody else, as in a container.
    let script = r#"PATH=$(echo /usr/lib/postgresql/*/bin):$PATH; as() { "$@"; }; [ "$(id -u)" = 0 ] && { chown nobody . && chmod 755 .; as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }; }
        as initdb -D data -U iolab -A trust --no-locale > /dev/null || exit 9; start() { as pg_ctl -D data -w -l log -o "-k $PWD -c listen_addresses='' -c max_connections=20 -c shared_buffers=16MB" start > /dev/null; echo "started $?"; }
        run() { as psql -h "$PWD" -U iolab -d postgres -Atqc "$1"; }
        start; as pgbench -h "$PWD" -U iolab -i -q postgres 2> /dev/null; as pgbench -h "$PWD" -U iolab -n -c 4 -j 2 -t 100 postgres > /dev/null 2> bench || cat bench
        run 'select count(*) from pgbench_history'; run 'select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history)'; as pg_ctl -D data -m immediate stop > /dev/null; start
        run 'select count(*) from pgbench_history'; run 'select (select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history)'; run 'copy (select generate_series(1, 5000)) to stdout' | md5sum
        as pg_ctl -D data -m fast stop > /dev/null; as pg_checksums -D data --check > /dev/null 2>&1; as pg_controldata -D data | grep state; rm -rf data log bench"#;
    check(script, &[("pgbench", "postgresql")]);
}
