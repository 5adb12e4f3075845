//! `iolab calibrate`: measures this machine's storage into a platform file.

use crate::failure::Failure;
use crate::output::{Kind, Output};
use clap::Args;
use iolab_device::local::LocalStorage;
use iolab_host::calibrate::{
    Calibration, Carrying, Check, GuestCosts, InterceptProbe, Spawning, calibrate, check,
    probe_guest, probe_spawns,
};
use iolab_host::file_system_of;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Measure what calls cost on the file system of a directory, and write a platform file for
/// `iolab simulate`. Takes some seconds; files are made in the directory and removed again.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Directory on the file system to measure
    directory: PathBuf,
    /// Where the platform file goes; `-` is stdout [default: this-machine.toml]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Afterwards do small workloads for real and by the model, and print the error
    #[arg(long)]
    check: bool,
    /// Print the parameters and their errors as JSON
    #[arg(long)]
    json: bool,
    /// Run as the guest of a measurement: append to the directory's file, or start processes
    #[arg(long, hide = true, value_parser = ["calls", "spawns"])]
    probe: Option<String>,
}

/// The platform file: the part of it that calibration knows.
#[derive(Serialize)]
struct ThisMachine<'a> {
    name: &'a str,
    local: &'a LocalStorage,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(probe) = &arguments.probe {
        return run_probe(probe, &arguments.directory);
    }
    let output = arguments.output.as_deref();
    let default = Path::new("this-machine.toml");
    let output = Output::named_or(output, default, "-o", Kind::Platform, &[])?;
    let path = output.path().to_owned();
    let calibration = measure(&arguments.directory)?;
    output.write(platform_text(&calibration)?.as_bytes())?;
    let checks = match arguments.check {
        true => check(&calibration.storage, &arguments.directory).map_err(Failure::new)?,
        false => Vec::new(),
    };
    match arguments.json {
        true => print_json(&calibration, &checks),
        false => print_text(&calibration, &checks),
    }
    eprintln!("wrote {}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// The platform file of a calibration.
pub(crate) fn platform_text(calibration: &Calibration) -> Result<String, Failure> {
    toml::to_string(&ThisMachine { name: "this-machine", local: &calibration.storage })
        .map_err(Failure::new)
}

/// Calibrates for the file system of `directory`, telling progress on stderr.
pub(crate) fn measure(directory: &Path) -> Result<Calibration, Failure> {
    let file_system = file_system_of(directory).map_err(|error| {
        Failure::new(format!("{}: {error}", directory.display()))
            .hint("give a directory that exists and can be written to")
    })?;
    let intercept = InterceptProbe { guest: &guest_costs, spawns: &guest_spawns };
    let mut progress = |stage: &str| eprintln!("calibrate: {stage}");
    let with_guests = calibrate(directory, &file_system, Some(&intercept), &mut progress);
    match with_guests {
        Err(error) if error.cause.kind() == io::ErrorKind::Unsupported => {
            eprintln!(
                "calibrate: strategies cannot be measured here ({error}), using documented costs"
            );
            calibrate(directory, &file_system, None, &mut progress)
        }
        other => other,
    }
    .map_err(|error| {
        let hint = match error.cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "give a directory with 64 MiB free"
            }
            _ => "give a directory that can be written to",
        };
        Failure::new(error).hint(hint)
    })
}

fn run_probe(probe: &str, place: &Path) -> Result<ExitCode, Failure> {
    match probe {
        "calls" => {
            let costs = probe_guest(place).map_err(Failure::new)?;
            let GuestCosts { first_write_ns, write_ns, write_more_ns, seek_more_ns, open_more_ns } =
                costs;
            say_line!("{first_write_ns} {write_ns} {write_more_ns} {seek_more_ns} {open_more_ns}");
        }
        _ => say_line!("{}", probe_spawns(&mut Command::new("true")).map_err(Failure::new)?),
    }
    Ok(ExitCode::SUCCESS)
}

fn guest_costs(carrying: Carrying, path: &Path) -> io::Result<GuestCosts> {
    let [first_write_ns, write_ns, write_more_ns, seek_more_ns, open_more_ns] =
        guest("calls", carrying, path)?;
    Ok(GuestCosts { first_write_ns, write_ns, write_more_ns, seek_more_ns, open_more_ns })
}

fn guest_spawns(spawning: Spawning) -> io::Result<f64> {
    const ELSEWHERE: &str = "null:paths=nothing-is-called-so";
    let carrying = match spawning {
        Spawning::Bare => Carrying::Nothing,
        Spawning::Preloaded => Carrying::Strategy(ELSEWHERE),
        Spawning::Launched => {
            let mut launcher = Command::new(std::env::current_exe()?);
            return probe_spawns(
                launcher.args(["run", "--quiet", "--apply", ELSEWHERE, "--", "true"]),
            );
        }
    };
    guest("spawns", carrying, Path::new(".")).map(|[cost_ns]| cost_ns)
}

/// Runs this program again as a guest of `iolab run` (or bare) and reads the numbers it prints.
fn guest<const COUNT: usize>(
    probe: &str,
    carrying: Carrying,
    place: &Path,
) -> io::Result<[f64; COUNT]> {
    let iolab = std::env::current_exe()?;
    let mut command = Command::new(&iolab);
    let trace = place.with_extension("iot");
    match carrying {
        Carrying::Nothing => &mut command,
        Carrying::Strategy(strategy) => {
            command.args(["run", "--quiet", "--apply", strategy, "--"]).arg(&iolab)
        }
        Carrying::Recorder => command.args(["record", "-o"]).arg(&trace).arg("--").arg(&iolab),
    };
    command.arg("calibrate").arg("--probe").arg(probe).arg(place).stderr(Stdio::piped());
    let output = command.output()?;
    let unsupported = |what: String| io::Error::new(io::ErrorKind::Unsupported, what);
    if !output.status.success() {
        return Err(unsupported(
            String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "),
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| unsupported(format!("the probe said `{}`", text.trim())))
}

fn print_text(calibration: &Calibration, checks: &[Check]) {
    say_line!("{:<26} {:>14} {:>9} {:>9}", "parameter", "ns", "spread", "fit error");
    for fit in &calibration.fits {
        let fit_error = fit.interpolation_error.map_or("–".to_owned(), percent);
        let spread = if fit.spread.is_nan() { "–".to_owned() } else { percent(fit.spread) };
        say_line!("{:<26} {:>14.1} {spread:>9} {fit_error:>9}", fit.parameter, fit.value_ns);
    }
    if !checks.is_empty() {
        say_line!(
            "\n{:<44} {:>12} {:>12} {:>7}",
            "check, ns per round",
            "measured",
            "predicted",
            "error"
        );
    }
    for check in checks {
        let (measured, predicted) = (check.measured_ns, check.predicted_ns);
        let error = format!("{:+.0} %", check.error() * 100.0);
        say_line!("{:<44} {measured:>12.0} {predicted:>12.0} {error:>7}", check.workload);
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn print_json(calibration: &Calibration, checks: &[Check]) {
    let parameters: Vec<_> = calibration
        .fits
        .iter()
        .map(|fit| {
            serde_json::json!({
                "parameter": fit.parameter,
                "value_ns": fit.value_ns,
                "spread": fit.spread,
                "interpolation_error": fit.interpolation_error,
            })
        })
        .collect();
    let checks: Vec<_> = checks
        .iter()
        .map(|check| {
            serde_json::json!({
                "workload": check.workload,
                "measured_ns": check.measured_ns,
                "predicted_ns": check.predicted_ns,
                "error": check.error(),
            })
        })
        .collect();
    say_line!("{}", serde_json::json!({ "parameters": parameters, "checks": checks }));
}
