//! A request that failed although it carries several operations' data is tried again part by part, so that each
//! operation hears of its own errors and of no other's.

use std::collections::BTreeMap;

use iosched::RequestId;

use crate::Errno;

/// A request that is tried part by part, one at a time: it has one place in the device.
#[derive(Debug)]
struct Salvage {
    /// Parts not tried yet, last first.
    left: Vec<u32>,
    /// A part is being tried.
    trying: bool,
}

/// Requests that are tried part by part.
#[derive(Debug, Default)]
pub(super) struct Salvages {
    requests: BTreeMap<RequestId, Salvage>,
    /// Of each part tried.
    results: BTreeMap<u32, Result<(), Errno>>,
}

impl Salvages {
    /// `parts` of `request` are to be tried alone, the last of them first.
    pub(super) fn begin(&mut self, request: RequestId, parts: Vec<u32>) {
        self.requests.insert(request, Salvage { left: parts, trying: false });
    }

    /// The next part to try.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(RequestId, u32)> {
        if self.requests.is_empty() {
            return None;
        }
        let (&request, salvage) = self.requests.iter_mut().find(|(_, salvage)| !salvage.trying)?;
        salvage.trying = true;
        Some((request, salvage.left.pop()?))
    }

    /// A part has been tried. Whether it was the last of its request.
    pub(super) fn tried(&mut self, request: RequestId, part: u32, result: Result<(), Errno>) -> bool {
        self.results.insert(part, result);
        let Some(salvage) = self.requests.get_mut(&request) else { return false };
        salvage.trying = false;
        let last = salvage.left.is_empty();
        if last {
            self.requests.remove(&request);
        }
        last
    }

    /// Takes the result of a part that was tried alone.
    #[inline]
    pub(super) fn result(&mut self, part: u32) -> Option<Result<(), Errno>> {
        if self.results.is_empty() { None } else { self.results.remove(&part) }
    }
}
