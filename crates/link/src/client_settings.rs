//! How a client reaches the server.

/// Settings of TileDB with which S3 is read from the server at `address`, its host and port.
pub fn client_settings(address: &str) -> [(&'static str, String); 5] {
    [
        ("vfs.s3.scheme", "http"),
        ("vfs.s3.region", "us-east-1"),
        ("vfs.s3.no_sign_request", "true"),
        ("vfs.s3.use_virtual_addressing", "false"),
        ("vfs.s3.endpoint_override", address),
    ]
    .map(|(name, value)| (name, value.to_owned()))
}
