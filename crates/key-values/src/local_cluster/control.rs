//! Commands to single nodes.

use std::time::Duration;

use redis::{Client, Cmd, Connection, ConnectionAddr, IntoConnectionInfo as _, RedisResult};
use redis::{FromRedisValue, RedisConnectionInfo, cmd};

/// A node on loopback answers at once, or is about to die. MIGRATE of many keys takes longer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the port on loopback, and checks that the server answers.
pub(super) fn connect(port: u16, password: Option<&str>) -> RedisResult<Connection> {
    let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(password) = password {
        login = login.set_password(password);
    }
    let address = ConnectionAddr::Tcp("127.0.0.1".to_owned(), port);
    let info = address.into_connection_info()?.set_redis_settings(login);
    let mut connection = Client::open(info)?.get_connection_with_timeout(TIMEOUT)?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.set_write_timeout(Some(TIMEOUT))?;
    let _pong: String = cmd("PING").query(&mut connection)?;
    Ok(connection)
}

/// The node's own id.
pub(super) fn my_id(connection: &mut Connection) -> RedisResult<String> {
    command("CLUSTER MYID").query(connection)
}

/// A command from its words.
pub(super) fn command(words: &str) -> Cmd {
    let mut command = Cmd::new();
    for word in words.split(' ') {
        command.arg(word);
    }
    command
}

/// Runs the command, whose words are `words`.
pub(super) fn ask<T: FromRedisValue>(connection: &mut Connection, words: &str) -> RedisResult<T> {
    command(words).query(connection)
}
