//! Real threads around a ring.

use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};

use slots::{CopyGuard, Error, Mapped, Ring, Slot};

#[test]
fn threads_fill_parts_of_one_slot() {
    let ring = Ring::new(1, &[400, 4], &Mapped).unwrap();
    let mut slot = ring.take().unwrap();
    let [images, labels] = &mut slot.keys_mut()[..] else { unreachable!("two keys") };
    std::thread::scope(|scope| {
        for (idx, (image, label)) in images.chunks_mut(100).zip(labels.iter_mut()).enumerate() {
            scope.spawn(move || {
                image.fill(idx as u8);
                *label = 10 + idx as u8;
            });
        }
    });
    for (idx, image) in slot.key(0).chunks(100).enumerate() {
        assert!(image.iter().all(|byte| *byte == idx as u8));
    }
    assert_eq!(slot.key(1), [10, 11, 12, 13]);
}

/// Three decoders, a consumer and a copier, over as many slots as can be in use at once. Each batch
/// arrives as it was written.
#[test]
fn many_batches_go_round() {
    const BATCHES: u32 = 2000;
    let ring = Ring::new(3 + 2 + 1, &[4096, 0, 4], &Mapped).unwrap();
    let (to_consumer, decoded) = sync_channel::<Slot>(2);
    let (to_copier, delivered) = channel::<CopyGuard>();
    let copier = std::thread::spawn(move || {
        delivered.iter().map(|copy| u64::from(number(copy.slot()))).sum::<u64>()
    });
    let decoders: Vec<_> = (0..3)
        .map(|decoder| {
            let (ring, to_consumer) = (Arc::clone(&ring), to_consumer.clone());
            std::thread::spawn(move || {
                for batch in (decoder..BATCHES).step_by(3) {
                    let mut slot = ring.take().unwrap();
                    slot.key_mut(0).fill(batch as u8);
                    slot.key_mut(2).copy_from_slice(&batch.to_ne_bytes());
                    to_consumer.send(slot).unwrap();
                }
            })
        })
        .collect();
    drop(to_consumer);
    for slot in decoded {
        number(&slot);
        to_copier.send(slot.copying()).unwrap();
    }
    drop(to_copier);
    for decoder in decoders {
        decoder.join().unwrap();
    }
    assert_eq!(copier.join().unwrap(), (0..u64::from(BATCHES)).sum());
    assert_eq!(ring.usage().free, 6);
}

/// The number in a batch, which all of its bytes must fit.
fn number(slot: &Slot) -> u32 {
    let number = u32::from_ne_bytes(slot.key(2).try_into().unwrap());
    assert!(slot.key(0).iter().all(|byte| *byte == number as u8));
    number
}

#[test]
fn a_consumer_that_keeps_batches_learns_how_many_slots_would_do() {
    let ring = Ring::new(2, &[1], &Mapped).unwrap();
    let kept = [ring.take().unwrap(), ring.take().unwrap()];
    let error = ring.take().unwrap_err();
    assert_eq!(error, Error::AllKept { n_slots: 2, needed: 3 });
    assert!(error.to_string().contains("at least 3 slots"), "{error}");
    drop(kept);
    assert_eq!(ring.usage().most_in_use, 2);
    assert!(ring.take().is_ok());
}
