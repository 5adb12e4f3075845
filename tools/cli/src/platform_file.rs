//! The platform that a command takes: a file, or a preset by its name.

use crate::failure::Failure;
use iolab_sim::platform::Platform;

/// Reads a platform file, or takes the preset of that name. `this-machine` is what `iolab calibrate`
/// wrote into the current directory.
pub(crate) fn read_platform(name: &str) -> Result<Platform, Failure> {
    let name = if name == "this-machine" { "this-machine.toml" } else { name };
    match std::fs::read_to_string(name) {
        Ok(text) => parsed(name, &text),
        Err(_) if !name.contains(['/', '.']) => Ok(Platform::preset(name)?),
        Err(error) => Err(Failure::new(format!("{name}: {error}"))
            .hint("`iolab calibrate DIR -o FILE` writes a platform file for this machine")),
    }
}

/// The platform of a file. One that describes nothing to run on is told before anything is run for it.
fn parsed(name: &str, text: &str) -> Result<Platform, Failure> {
    let platform = Platform::parse(text)
        .map_err(|error| Failure::new(format!("{name}: {}", error.message)).hint(error.hint))?;
    if platform.local.is_none() && platform.nodes.is_empty() {
        return Err(Failure::new(format!(
            "{name}: neither [local] storage nor [[nodes]] is in it"
        ))
        .hint("give a platform as `iolab calibrate DIR` writes it, or a cluster"));
    }
    Ok(platform)
}
