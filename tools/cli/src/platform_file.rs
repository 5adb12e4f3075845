//! The platform that a command takes: a file, or a preset by its name.

use crate::failure::Failure;
use iolab_sim::platform::Platform;

/// Reads a platform file, or takes the preset of that name. `this-machine` is what `iolab calibrate`
/// wrote into the current directory.
pub(crate) fn read_platform(name: &str) -> Result<Platform, Failure> {
    let name = if name == "this-machine" { "this-machine.toml" } else { name };
    match std::fs::read_to_string(name) {
        Ok(text) => Platform::parse(&text)
            .map_err(|error| Failure::new(format!("{name}: {}", error.message)).hint(error.hint)),
        Err(_) if !name.contains(['/', '.']) => Ok(Platform::preset(name)?),
        Err(error) => Err(Failure::new(format!("{name}: {error}"))
            .hint("`iolab calibrate DIR -o FILE` writes a platform file for this machine")),
    }
}
