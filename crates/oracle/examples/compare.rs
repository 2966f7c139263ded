fn main() {
    let mut args = std::env::args().skip(1);
    let first: u64 = args.next().unwrap().parse().unwrap();
    let count: u64 = args.next().unwrap().parse().unwrap();
    let mut linux = oracle::Linux::new().unwrap();
    let begun = std::time::Instant::now();
    let (mut steps, mut generating) = (0, 0.0);
    for seed in first..first + count {
        let t = std::time::Instant::now();
        let sequence = oracle::generate::sequence(seed, 30 + seed as usize % 170, &|_| true);
        generating += t.elapsed().as_secs_f64();
        match oracle::check::play(&sequence, &mut [&mut linux]).unwrap() {
            Ok(played) => steps += played.compared,
            Err(found) => {
                println!("seed {seed}: {} steps", found.steps.len());
                let found = oracle::check::shrink(found, &mut [&mut linux]).unwrap();
                println!("{found}");
            }
        }
    }
    let s = begun.elapsed().as_secs_f64();
    println!("{steps} steps in {s:.1} s; generating {generating:.1} s");
}
