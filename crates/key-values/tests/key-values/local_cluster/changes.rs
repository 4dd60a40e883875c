//! A cluster changes while it runs.

use std::time::Duration;

use key_values::local_cluster::{ClusterSpec, Error, LocalCluster, N_SLOTS, Role};

use crate::{ask, start, try_ask};

fn slots(cluster: &LocalCluster) -> Vec<u16> {
    cluster.nodes().unwrap().iter().map(|node| node.n_slots).collect()
}

#[test]
fn slots_move_with_their_keys_and_nodes_join() {
    let Some(mut cluster) = start(ClusterSpec { n_masters: 2, ..ClusterSpec::default() }) else {
        return;
    };
    assert_eq!(slots(&cluster), [N_SLOTS / 2, N_SLOTS / 2]);
    let urls = cluster.urls();
    // Keys with the same tag share a slot; CLUSTER KEYSLOT says which.
    let slot: u16 = ask(&urls[0], "CLUSTER KEYSLOT {tag}");
    let (from, to) = if slot < N_SLOTS / 2 { (0, 1) } else { (1, 0) };
    for key in 0..200 {
        ask::<()>(&urls[from], &format!("SET {{tag}}{key} value-{key}"));
    }
    cluster.move_slots(slot..slot + 1, from, to).unwrap();
    for key in 0..200 {
        let value: String = ask(&urls[to], &format!("GET {{tag}}{key}"));
        assert_eq!(value, format!("value-{key}"));
    }
    assert_eq!(ask::<usize>(&urls[from], "DBSIZE"), 0);
    assert_eq!(slots(&cluster)[to], N_SLOTS / 2 + 1);

    let added = cluster.add_master().unwrap();
    assert_eq!(slots(&cluster)[added], 0);
    cluster.move_slots(slot..slot + 1, to, added).unwrap();
    assert_eq!(slots(&cluster)[added], 1);
    assert_eq!(ask::<usize>(&cluster.urls()[added], "DBSIZE"), 200);

    // Not its slot any more: refused, and nothing is left half moved.
    let refused = cluster.move_slots(slot..slot + 1, from, to).unwrap_err();
    assert!(matches!(&refused, Error::Command { node, .. } if *node == from), "{refused:?}");
    let view: String = ask(&urls[to], "CLUSTER NODES");
    assert!(!view.contains('['), "{view}");
}

#[test]
fn replicas_take_over_from_masters_that_run_and_from_dead_ones() {
    let spec = ClusterSpec {
        n_masters: 2,
        n_replicas_per_master: 1,
        password: Some("s3cret".into()),
        // Nobody must find out by waiting.
        node_timeout: Duration::from_mins(1),
        ..ClusterSpec::default()
    };
    let Some(mut cluster) = start(spec) else { return };
    let roles = |cluster: &LocalCluster| -> Vec<Role> {
        cluster.nodes().unwrap().iter().map(|node| node.role).collect()
    };
    let masters_first =
        [Role::Master, Role::Master, Role::Replica { of: 0 }, Role::Replica { of: 1 }];
    assert_eq!(roles(&cluster), masters_first);
    assert_eq!(cluster.failover(0).unwrap(), 2);
    cluster.wait_until_ok().unwrap();
    assert_eq!(roles(&cluster)[..3], [Role::Replica { of: 2 }, Role::Master, Role::Master]);
    cluster.kill(1).unwrap();
    assert_eq!(cluster.failover(1).unwrap(), 3);
    assert_eq!(roles(&cluster)[1..], [Role::Stopped, Role::Master, Role::Master]);
    assert!(matches!(cluster.failover(1), Err(Error::Node { node: 1, .. })));
    assert!(matches!(cluster.kill(1), Err(Error::Node { node: 1, .. })));
    cluster.restart(1).unwrap();
    assert!(matches!(cluster.restart(1), Err(Error::Node { node: 1, .. })));
    cluster.wait_until_ok().unwrap();
    assert_eq!(roles(&cluster)[1], Role::Replica { of: 3 });
    // Nobody gets in without the password.
    assert!(try_ask::<String>(&cluster.urls()[0], "PING").is_err());
}
