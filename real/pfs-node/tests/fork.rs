//! A process that forks: the child has a session of its own.

use iolab_pfs::OpenWish;
use iolab_pfs_node::Client;
use iolab_pfs_node::files::OpenFile;
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;

const TO_WRITE: OpenWish = OpenWish {
    reads: true,
    writes: true,
    creates: true,
    exclusive: false,
    mode: 0o600,
    layout: None,
};

#[test]
fn parent_and_child_use_the_same_client_without_knowing_of_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let wish = Wish { servers: Some(2), ..Wish::default() };
    let node = Node::start(Instance::take(directory.path(), &wish).unwrap()).unwrap();
    let client = Client::of(directory.path()).unwrap();
    let file = OpenFile::open(&client, b"/of-parent", TO_WRITE).unwrap();
    file.write_at(0, &[1; 500_000]).unwrap();
    // SAFETY: the child uses only what this test hands it, and leaves without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = OpenFile::open(&client, b"/of-child", TO_WRITE)
            .and_then(|file| file.write_at(0, &[2; 500_000]).map(|()| file))
            .and_then(|file| file.close());
        // SAFETY: ends the child, and nothing of the parent in it.
        unsafe { libc::_exit(if done.is_ok() { 0 } else { 1 }) };
    }
    for round in 0..50 {
        file.write_at(round * 1000, &[3; 1000]).unwrap();
    }
    let mut status = 1;
    // SAFETY: waits for the child that was just made.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    let mut to = vec![0; 500_000];
    assert_eq!(file.read_at(0, &mut to), Ok(500_000));
    assert!(to[..50_000] == [3; 50_000] && to[50_000..] == [1; 450_000]);
    let of_child = OpenFile::open(&client, b"/of-child", OpenWish::TO_READ).unwrap();
    assert_eq!(of_child.read_at(0, &mut to), Ok(500_000));
    assert!(to == [2; 500_000]);
    assert!(node.stop());
}
