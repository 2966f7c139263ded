//! Names that are kept from one interval of a recording to the next.

use super::{Function, Named, data, kernel, user};
use crate::account::{Cut, Frame, Stack};
use crate::tasks::Place;
use crate::unwind::Word;
use blazesym::symbolize::Symbolizer;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Names of all stacks so far, and what they are made of.
#[derive(Default)]
pub(crate) struct Resolver {
    symbolizer: Symbolizer,
    files: Vec<String>,
    stacks: Arc<Vec<Named>>,
    kernel: HashMap<u64, String>,
    user: HashMap<Place, Vec<Function>>,
    /// Names of variables.
    variables: HashMap<Word, String>,
}

impl Resolver {
    /// Names what is new in `cut`. Returns all stacks by number, and the names of its words.
    pub fn take(&mut self, cut: &mut Cut) -> (Arc<Vec<Named>>, HashMap<Word, String>) {
        if cut.anew {
            *self = Resolver::default();
        }
        self.files.append(&mut cut.files);
        let new = std::mem::take(&mut cut.stacks);
        self.look_up(&new);
        let named = new.into_iter().map(|stack| self.name(stack));
        let named: Vec<Named> = named.collect();
        Arc::make_mut(&mut self.stacks).extend(named);
        let words = cut.totals.words.keys().map(|&(_, word)| word);
        (Arc::clone(&self.stacks), self.words(words))
    }

    /// Finds the names of addresses that are not known yet.
    fn look_up(&mut self, stacks: &[Stack]) {
        let mut addresses = BTreeSet::new();
        let mut places: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for frame in stacks.iter().flat_map(|stack| &stack.frames) {
            match *frame {
                Frame::Kernel(address) if !self.kernel.contains_key(&address) => {
                    addresses.insert(address);
                }
                Frame::User(place) if !self.user.contains_key(&place) => {
                    places.entry(place.file).or_default().insert(place.offset);
                }
                _ => {}
            }
        }
        let Resolver {
            symbolizer, files, ..
        } = self;
        self.kernel.extend(kernel::names(symbolizer, &addresses));
        self.user.extend(user::names(symbolizer, &places, files));
    }

    fn name(&self, stack: Stack) -> Named {
        let mut named = Named {
            process: stack.name,
            thread: stack.thread,
            ..Named::default()
        };
        for frame in stack.frames {
            match frame {
                Frame::Kernel(address) => named.kernel.push(self.kernel[&address].clone()),
                Frame::User(place) => named.user.extend_from_slice(&self.user[&place]),
                Frame::Nowhere => named.user.push(user::unknown()),
                Frame::Cut => named.user.push(user::cut()),
            }
        }
        named
    }

    fn words(&mut self, words: impl Iterator<Item = Word>) -> HashMap<Word, String> {
        let (known, new): (Vec<Word>, Vec<Word>) =
            words.partition(|word| self.variables.contains_key(word));
        let mut names = data::names(new.into_iter(), &self.files);
        let variables = names.iter().filter(|(word, _)| word.is_variable());
        let found = variables.map(|(&word, name)| (word, name.clone()));
        self.variables.extend(found);
        names.extend(
            known
                .into_iter()
                .map(|word| (word, self.variables[&word].clone())),
        );
        names
    }
}
