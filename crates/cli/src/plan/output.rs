//! Options of `iosched plan` that write a plan in the form of another program, set it, and install
//! its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use iosched_kernel::{BlockDevice, Roots, StateDirectory};
use iosched_plan::Plan;
use iosched_plan::output::{self as outputs, ApplyRequest, Form, Note, Output, Place};

use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, say};

/// Root of the file system in which files are installed.
const ROOT: &str = "/";

/// How a plan is written, set and installed.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct PlanOutputArgs {
    /// Write the plan as configuration of another program: to standard output, or to files in DIR
    ///
    /// FORM is systemd, hwdb, containers, libvirt, qemu, proxmox, kubernetes or exports. If an
    /// output format cannot express a part of the plan, iosched prints this part to standard error.
    /// iosched also writes this part as a comment into the files.
    #[arg(long, value_name = "FORM[=DIR]")]
    write: Vec<FormAt>,

    /// Set the plan on this machine now; `iosched restore` restores the old values
    ///
    /// If iosched cannot set a value, it restores all old values. The new values stay set until the
    /// system starts again.
    #[arg(long)]
    apply: bool,

    /// Install the plan as configuration files of systemd, udev or Kubernetes, which apply it at every boot
    ///
    /// FORM is systemd, hwdb or kubernetes. iosched never replaces an edited file, or a file that iosched did not
    /// make. iosched prints the commands that activate the files.
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "systemd")]
    persist: Option<Form>,

    /// Remove the files that --persist installed
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "systemd",
          conflicts_with_all = ["persist", "apply"])]
    unpersist: Option<Form>,

    /// Apply or install the plan even if another program or user has set the same values
    #[arg(long)]
    replace_settings: bool,
}

/// A form, and the directory for its files.
#[derive(Clone, Debug, PartialEq)]
struct FormAt {
    form: Form,
    directory: Option<PathBuf>,
}

impl FromStr for FormAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (form, directory) = text.split_once('=').map_or((text, None), |(form, path)| (form, Some(path)));
        if directory == Some("") {
            return Err(format!("the directory is missing; write {form}=DIR, or {form} for standard output"));
        }
        let form = form.parse().map_err(|error: outputs::OutputError| error.to_string())?;
        Ok(Self { form, directory: directory.map(PathBuf::from) })
    }
}

impl PlanOutputArgs {
    /// Returns whether the user wants to write, set, install or remove the plan.
    pub(super) fn is_given(&self) -> bool {
        !self.write.is_empty() || self.apply || self.persist.is_some() || self.unpersist.is_some()
    }

    /// Writes, sets, installs or removes the plan of each device.
    ///
    /// # Errors
    /// - A plan cannot be written in an output format.
    /// - A path has a file of another program.
    /// - Two devices need different contents of one installed file.
    /// - The kernel refuses a value. Plans are set before their files are installed.
    pub(super) fn carry_out(&self, plans: &[Plan]) -> Result<()> {
        let roots = Roots::default();
        // Every form is checked before anything is written.
        let forms = plans.iter().map(|plan| self.forms(plan, &roots)).collect::<Result<Vec<_>>>()?;
        if self.persist.is_some() || self.unpersist.is_some() {
            check_shared(&forms)?;
        }
        let is_fleet = plans.len() > 1;
        for of_device in &forms {
            for (form, at) in &of_device.written {
                let below = at.directory.as_ref().map(|directory| match is_fleet {
                    true => directory.join(&of_device.name),
                    false => directory.clone(),
                });
                if is_fleet && below.is_none() {
                    output::print(&format!("# {}\n\n", of_device.name))?;
                }
                write(form, below.as_deref())?;
            }
        }
        if self.apply {
            plans.iter().try_for_each(|plan| apply(plan, &roots, self.replace_settings))?;
        }
        for of_device in &forms {
            of_device.installed.iter().try_for_each(|form| install(form, self.replace_settings))?;
            of_device.removed.iter().try_for_each(remove)?;
        }
        Ok(())
    }

    /// Returns the files of one plan.
    fn forms(&self, plan: &Plan, roots: &Roots) -> Result<Forms<'_>> {
        let place = Place::of_plan(plan, roots).map_err(usage)?;
        let of = |form: &Form| outputs::output(*form, plan, &place).map_err(usage);
        Ok(Forms {
            name: place.disk.clone(),
            written: self.write.iter().map(|at| Ok((of(&at.form)?, at))).collect::<Result<_>>()?,
            installed: self.persist.as_ref().map(of).transpose()?,
            removed: self.unpersist.as_ref().map(of).transpose()?,
        })
    }
}

/// The files of the plan of one device.
struct Forms<'a> {
    /// Kernel name of the disk.
    name: String,
    written: Vec<(Output, &'a FormAt)>,
    installed: Option<Output>,
    removed: Option<Output>,
}

/// Checks that installed files of several devices do not replace each other.
fn check_shared(forms: &[Forms<'_>]) -> Result<()> {
    let mut known: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for of_device in forms {
        let files = of_device.installed.iter().chain(&of_device.removed).flat_map(|form| &form.files);
        for file in files.filter(|file| file.path.starts_with('/')) {
            let (name, text) = (of_device.name.as_str(), file.text.as_str());
            let (other, its) = *known.entry(&file.path).or_insert((name, text));
            if its != text {
                return Err(usage(format!(
                    "{}: {other} and {name} need different contents of this file, so iosched cannot install the plans \
                     of several devices together. Plan for one device, or write the files with --write FORM=DIR and \
                     merge them",
                    file.path
                )));
            }
        }
    }
    Ok(())
}

fn write(form: &Output, directory: Option<&Path>) -> Result<()> {
    match directory {
        Some(directory) => {
            for path in outputs::write_below(form, directory)? {
                output::print(&format!("{}\n", path.display()))?;
            }
        }
        None => {
            for file in &form.files {
                output::print(&format!("==> {} <==\n{}\n", file.path, file.text))?;
            }
        }
    }
    notes(&form.notes);
    Ok(())
}

fn notes(notes: &[Note]) {
    notes.iter().for_each(|note| say!("note: {note}"));
}

fn apply(plan: &Plan, roots: &Roots, force: bool) -> Result<()> {
    let node = plan.device.as_deref().unwrap_or_default();
    let device = BlockDevice::itself(roots, Path::new(node))?;
    let state = StateDirectory::usual()?;
    let applied = outputs::apply(&ApplyRequest { plan, device: &device, state: &state, force })?;
    for change in &applied.changes {
        let from = change.from.as_deref().unwrap_or("nothing");
        output::print(&format!("{}: {} -> {from}\n", change.name, change.to))?;
    }
    notes(&applied.notes);
    say!("undo: iosched restore {}", device.disk().name());
    Ok(())
}

fn install(form: &Output, force: bool) -> Result<()> {
    for path in outputs::persist(form, Path::new(ROOT), force)? {
        output::print(&format!("{}\n", path.display()))?;
    }
    for file in form.files.iter().filter(|file| !file.path.starts_with('/')) {
        say!(
            "note: iosched did not install {}. To write this file to a directory, use --write {}=DIR.",
            file.path,
            form.form
        );
    }
    notes(&form.notes);
    commands("activate", form, |file| &file.activate);
    say!("undo: iosched plan PLAN --unpersist={}", form.form);
    Ok(())
}

fn remove(form: &Output) -> Result<()> {
    let removed = outputs::unpersist(form, Path::new(ROOT))?;
    if removed.is_empty() {
        say!("there is no file of this plan to remove");
    }
    for path in &removed {
        output::print(&format!("removed {}\n", path.display()))?;
    }
    if !removed.is_empty() {
        commands("complete the removal", form, |file| &file.undo);
    }
    Ok(())
}

/// Prints the commands of the installed files. Each command is printed once.
fn commands(title: &str, form: &Output, commands_of: impl Fn(&outputs::OutputFile) -> &Vec<String>) {
    let installed = form.files.iter().filter(|file| file.path.starts_with('/'));
    let mut all: Vec<&String> = Vec::new();
    for command in installed.flat_map(commands_of).filter(|command| !command.starts_with("rm -f ")) {
        // If a command occurs again, only the last occurrence counts: a reload must come after all
        // changes.
        all.retain(|known| *known != command);
        all.push(command);
    }
    if !all.is_empty() {
        say!("to {title}, run:");
        all.iter().for_each(|command| say!("  {command}"));
    }
}
