//! Without a handler a violation panics, with a message that names all call sites.

#[allow(dead_code)]
mod watched;

use hosted::Hosted;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::lock_class;
use sync::watch::{Order, Watched};
use watched::Tas;

lock_class!(Map = "map");
lock_class!(Object = "object");

type Lock<C> = lock_api::Mutex<Watched<Hosted, Tas<Hosted>, C, Order>, ()>;

#[test]
fn a_reversal_panics_and_names_four_places() {
    let (map, object): (Lock<Map>, Lock<Object>) = (Lock::new(()), Lock::new(()));
    let base = line!();
    {
        let _map = map.lock();
        let _object = object.lock();
    }
    let reversed = catch_unwind(AssertUnwindSafe(|| {
        let _object = object.lock();
        let _map = map.lock();
    }));
    let message = *reversed.unwrap_err().downcast::<String>().unwrap();
    let file = file!();
    let at = |line: u32, column: u32| format!("{file}:{}:{column}", base + line);
    let (first, second) = (at(6, 30), at(7, 24));
    let (third, fourth) = (at(2, 24), at(3, 30));
    assert_eq!(
        message,
        format!(
            "lock order reversed:\n  \
             now: \"object\", taken at {first}, is held; \"map\" is waited for at {second}\n  \
             before: \"map\", taken at {third}, is held; \"object\" is waited for at {fourth}"
        )
    );
    // Unwinding has released both, and the map's lock was not taken.
    assert!(map.try_lock().is_some() && object.try_lock().is_some());
}
