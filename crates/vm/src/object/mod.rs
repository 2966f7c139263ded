//! placeholder
use crate::error::Error;
use alloc::sync::Arc;
use core::marker::PhantomData;
use machine::VaRange;
pub struct Attachment<M, P>(PhantomData<fn() -> (M, P)>);
pub struct ObjectRef<M, P>(PhantomData<fn() -> (M, P)>);
impl<M, P> Attachment<M, P> {
    pub fn inherit(&self, _o: *const ()) -> Result<Arc<Self>, Error> {
        unimplemented!()
    }
    pub fn moved(&self, _by: u64, _to: VaRange) -> Result<Arc<Self>, Error> {
        unimplemented!()
    }
    pub fn new(
        _o: &ObjectRef<M, P>,
        _delta: u64,
        _owner: *const (),
        _range: VaRange,
    ) -> Result<Arc<Self>, Error> {
        unimplemented!()
    }
}
