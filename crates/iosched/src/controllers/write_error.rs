//! Why a controller's file refuses what is written to it.

/// A text was refused; the kernel's error numbers are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// It is not what the file takes (`EINVAL`, 22).
    #[error("this is not what the file takes")]
    Invalid,
    /// A value is out of range (`ERANGE`, 34).
    #[error("a value is out of range")]
    Range,
    /// A cgroup's file, and no cgroup is named.
    #[error("no cgroup is named; write CGROUP:WORDS, as in backup:wbps=50000000/wiops=100, and + between cgroups")]
    NoCgroup,
    /// There is no such file (`ENOENT`, 2).
    #[error("there is no such file")]
    NoSuchFile,
}

impl WriteError {
    /// The kernel's number of the error.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Invalid | Self::NoCgroup => 22,
            Self::Range => 34,
            Self::NoSuchFile => 2,
        }
    }
}

/// A write to a cgroup's file that was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {text:?}: {error}; {}", what_it_takes(.file))]
pub struct CgroupFileError {
    file: String,
    text: String,
    #[source]
    error: WriteError,
}

impl CgroupFileError {
    pub(crate) fn new(file: &str, text: &str, error: WriteError) -> Self {
        Self { file: file.to_owned(), text: text.to_owned(), error }
    }
}

/// What would be right.
fn what_it_takes(file: &str) -> &'static str {
    match file {
        "io.max" => "write any of rbps=N, wbps=N, riops=N and wiops=N, N from 2 or max",
        "io.latency" => "write target=N, in us, or target=max",
        "io.weight" => "write default N or N, from 1 to 10000",
        "io.cost.qos" => "write any of enable=0|1, ctrl=auto|user, rpct=, rlat=, wpct=, wlat=, min= and max=",
        "io.cost.model" => {
            "write any of ctrl=auto|user, model=linear, rbps=, rseqiops=, rrandiops=, wbps=, wseqiops= and wrandiops="
        }
        _ => "there are io.max, io.latency, io.weight, io.cost.qos and io.cost.model",
    }
}
