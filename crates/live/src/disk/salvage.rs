//! Retries of failed requests. A request that carries data of several operations is tried again
//! part by part, so that each operation gets its own errors and no others.

use std::collections::BTreeMap;

use iosched::RequestId;

use crate::Errno;

/// A request that is tried again part by part. Only one part is in flight at a time, because the
/// request has only one slot of the device.
#[derive(Debug)]
struct Salvage {
    /// Parts that are not yet tried. The next one is at the end.
    left: Vec<u32>,
    /// Whether a part is being tried.
    trying: bool,
}

/// All requests that are tried part by part.
#[derive(Debug, Default)]
pub(super) struct Salvages {
    requests: BTreeMap<RequestId, Salvage>,
    /// Result of each part that was tried.
    results: BTreeMap<u32, Result<(), Errno>>,
}

impl Salvages {
    /// Starts to try the `parts` of `request` alone, from the last element to the first.
    pub(super) fn begin(&mut self, request: RequestId, parts: Vec<u32>) {
        self.requests.insert(request, Salvage { left: parts, trying: false });
    }

    /// Returns the next part to try.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(RequestId, u32)> {
        if self.requests.is_empty() {
            return None;
        }
        let (&request, salvage) = self.requests.iter_mut().find(|(_, salvage)| !salvage.trying)?;
        salvage.trying = true;
        Some((request, salvage.left.pop()?))
    }

    /// Stores the result of a part. Returns whether it was the last part of its request.
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
