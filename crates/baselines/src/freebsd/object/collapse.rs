//! The end of objects, and the collapse of their shadow chains (FreeBSD 14, `vm_object_deallocate`
//! and `vm_object_collapse` of sys/vm/vm_object.c).

use super::{AnonObject, Backing};
use alloc::sync::{Arc, Weak};
use core::mem;
use machine::{Atomic, Machine, Ordering};
use sync::rwlock::RawRw;

impl<M: Machine> AnonObject<M> {
    /// Drops a reference. With the last one the object ends and drops its own reference to the
    /// object behind.
    #[track_caller]
    pub(super) fn deallocate(object: Arc<Self>) {
        let mut next = Some(object);
        while let Some(object) = next.take() {
            let counts = &object.links.counts;
            if counts.release_if_above(2) {
                return;
            }
            object.lock.0.write();
            let left = counts.release();
            let chain = object.chain();
            if left == 1 && chain.shadows.len() == 1 {
                next = object.collapse_shadow();
            } else if left > 0 {
                chain.is_mapped_once |= left == 1;
                object.unlock();
            } else {
                let backing = mem::replace(&mut chain.backing, Backing::None);
                if let Backing::Anon(behind) = &backing {
                    behind.lock.0.write();
                    behind.forget(&object);
                    behind.unlock();
                }
                let pages = object.pages();
                pages.resident.free_range::<M>(0..u64::MAX / 2);
                object.unlock();
                match backing {
                    Backing::Anon(behind) => next = Some(behind),
                    other => other.leave(),
                }
            }
        }
    }

    /// Lets the last shadow of the object, to which nothing else refers, take it over. The object
    /// is locked; this unlocks it. Returns the shadow with a reference
    /// (`vm_object_deallocate_anon`).
    #[track_caller]
    fn collapse_shadow(&self) -> Option<Arc<Self>> {
        let shadow = self.chain().shadows.first().and_then(Weak::upgrade);
        let Some(shadow) = shadow else {
            self.unlock();
            return None;
        };
        let counts = &shadow.links.counts;
        if shadow.lock.0.try_write() {
            self.unlock();
        } else {
            counts.begin();
            self.unlock();
            shadow.lock.0.write();
            counts.end();
        }
        let more = |refs| (refs > 0).then(|| refs + 1);
        let lives = counts
            .refs
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if lives.is_ok() {
            shadow.collapse();
        }
        shadow.unlock();
        lives.is_ok().then_some(shadow)
    }

    /// Takes over the objects behind this one to which nothing else refers, and bypasses those
    /// whose pages it shadows completely. This object is locked.
    #[track_caller]
    pub(super) fn collapse(self: &Arc<Self>) {
        while let Backing::Anon(behind) = self.chain().backing.clone() {
            behind.lock.0.write();
            let (own, its) = (self.pages(), behind.pages());
            let offset = self.chain().offset;
            let is_ours = behind.is_only();
            let shows = |page: u64| {
                let at = page.checked_sub(offset).filter(|&at| at < own.size);
                at.is_some_and(|at| !own.resident.has(at))
            };
            if !is_ours && its.resident.iter().any(shows) {
                return behind.unlock();
            }
            behind.forget(self);
            let beyond = behind.chain().backing.clone();
            if let Backing::Anon(beyond) = &beyond {
                beyond.lock.0.write();
                beyond.chain().shadows.push(Arc::downgrade(self));
                if is_ours {
                    beyond.forget(&behind);
                }
                beyond.unlock();
            }
            if is_ours {
                own.resident
                    .take_over::<M>(&mut its.resident, offset, own.size);
                // Its reference to the object behind it now belongs to this one.
                behind.chain().backing = Backing::None;
            } else {
                beyond.refer();
            }
            behind.links.counts.release();
            self.chain().offset += behind.chain().offset;
            self.chain().backing = beyond;
            behind.unlock();
        }
    }

    /// Removes `shadow` from this object's shadows. This object is locked.
    fn forget(&self, shadow: &Arc<Self>) {
        let is_other = |other: &Weak<Self>| !core::ptr::eq(other.as_ptr(), Arc::as_ptr(shadow));
        self.chain().shadows.retain(is_other);
    }
}
