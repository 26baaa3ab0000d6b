//! Replacement for the server of virtual machines in a build without the feature `vhost`. It has no
//! guests.

use iosched::Time;

use crate::Messages;
use crate::disk::{Done, LiveDisk};
use crate::ring::Calls;

pub(super) const COOKIES: u64 = 1 << 62;

pub(crate) struct Server;

impl Server {
    pub(super) fn new(_: Messages) -> Self {
        Self
    }

    pub(super) fn serve(&mut self, _: Time, _: &mut LiveDisk) {}

    pub(super) fn go_on(&mut self, _: Time, _: &mut LiveDisk) {}

    pub(super) fn next_time(&self) -> Option<Time> {
        None
    }

    pub(super) fn time(&mut self, _: Time, _: &mut dyn Calls) {}

    pub(super) fn answer(&mut self, _: Done) {}

    pub(super) fn has_answered(&self) -> bool {
        false
    }

    pub(super) fn tell(&mut self) {}

    pub(super) fn has_guests(&self) -> bool {
        false
    }

    pub(super) fn has_arrived(&mut self) -> bool {
        false
    }

    pub(super) fn arm(&mut self) -> bool {
        false
    }

    pub(super) fn end(&mut self) {}
}
