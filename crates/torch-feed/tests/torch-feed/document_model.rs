//! Doc2Vec over tensors: PyTorch's losses and steps, and wrong shapes.

use serde_json::Value;
use tch::{Device, Kind, Tensor};
use torch_feed::{DocumentExamples, DocumentModel, DocumentVectors, Error};

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

/// The numbers of a list, or of a list of lists.
fn ids(value: &Value) -> Tensor {
    let rows = value.as_array().unwrap();
    let number = |of: &Value| of.as_i64().unwrap();
    if !rows[0].is_array() {
        return Tensor::from_slice(&rows.iter().map(number).collect::<Vec<_>>());
    }
    let flat: Vec<i64> = rows.iter().flat_map(|row| row.as_array().unwrap()).map(number).collect();
    Tensor::from_slice(&flat).view([rows.len() as i64, -1])
}

fn golden() -> Value {
    // Written by `golden.py` beside it, with PyTorch.
    serde_json::from_str(include_str!("document_model/golden.json")).unwrap()
}

fn first_vectors(golden: &Value, with_words: bool) -> DocumentVectors {
    let size = |idx: usize| golden["sizes"][idx].as_i64().unwrap();
    let (n_documents, n_words, dimension) = (size(0), size(1), size(2));
    let tensor =
        |name: &str, shape: [i64; 2]| Tensor::from_slice(&floats(&golden[name])).view(shape);
    DocumentVectors {
        documents: tensor("documents", [n_documents, dimension]),
        words: with_words.then(|| tensor("words", [n_words, dimension])),
        outputs: tensor("outputs", [dimension, n_words]),
    }
}

#[track_caller]
fn assert_near(found: &Tensor, expected: &Value, what: &str) {
    let found = Vec::<f32>::try_from(found.flatten(0, -1)).unwrap();
    let expected = floats(expected);
    assert_eq!(found.len(), expected.len(), "{what}");
    for (idx, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-5, "{what}[{idx}]: {found}, torch has {expected}");
    }
}

#[test]
fn losses_and_steps_are_those_of_pytorch() {
    let golden = golden();
    let [doc_ids, context_ids, target_noise_ids] =
        ["doc_ids", "context_ids", "target_noise_ids"].map(|name| ids(&golden[name]));
    for name in ["distributed_memory", "bag_of_words"] {
        let first = first_vectors(&golden, name == "distributed_memory");
        let mut model = DocumentModel::new(&first, 0.1).unwrap();
        let examples = DocumentExamples {
            doc_ids: &doc_ids,
            context_ids: Some(&context_ids),
            target_noise_ids: &target_noise_ids,
        };
        let steps = golden[name].as_array().unwrap();
        assert_eq!(steps.len(), 2);
        for step in steps {
            let expected = step["loss"].as_f64().unwrap();
            let before = model.loss(examples).unwrap().double_value(&[]);
            let loss = model.step(examples).unwrap().double_value(&[]);
            assert!((loss - expected).abs() < 1e-6, "{name}: {loss}, torch has {expected}");
            assert!((loss - before).abs() < 1e-6);
            assert_near(&model.documents(), &step["after"]["documents"], "documents");
            assert_near(&model.outputs(), &step["after"]["outputs"], "outputs");
            match model.words() {
                Some(words) => assert_near(&words, &step["after"]["words"], "words"),
                None => assert!(step["after"]["words"].is_null()),
            }
        }
    }
}

#[test]
fn a_new_model_has_the_loss_of_guessing_and_learns() {
    tch::manual_seed(3);
    let first = DocumentVectors::distributed_memory(2, 6, 8, Device::Cpu).unwrap();
    let mut model = DocumentModel::new(&first, 0.1).unwrap();
    let doc_ids = Tensor::from_slice(&[0_i64, 0, 1]);
    let context_ids = Tensor::from_slice(&[0_i64, 1, 1, 2, 4, 5]).view([3, 2]);
    let target_noise_ids = Tensor::from_slice(&[2_i64, 3, 3, 0, 4, 1]).view([3, 2]);
    let examples = DocumentExamples {
        doc_ids: &doc_ids,
        context_ids: Some(&context_ids),
        target_noise_ids: &target_noise_ids,
    };
    // Zero outputs give every word a score of 0: the loss is 2 log 2.
    let loss = model.step(examples).unwrap().double_value(&[]);
    assert!((loss - 2.0 * 2_f64.ln()).abs() < 1e-6, "{loss}");
    for _ in 0..50 {
        drop(model.step(examples).unwrap());
    }
    let loss = model.loss(examples).unwrap().double_value(&[]);
    assert!(loss < 0.01, "{loss}");
    // The model has copied its first vectors.
    assert_eq!(first.outputs.abs().max().double_value(&[]), 0.0);
}

#[track_caller]
fn assert_shape(result: Result<Tensor, Error>, of: &str) {
    match result {
        Err(Error::ExampleShape { what, .. }) if what == of => {}
        other => panic!("{other:?} instead of the shape of {of}"),
    }
}

#[test]
fn wrong_shapes_and_numbers_are_errors() {
    let options = (Kind::Float, Device::Cpu);
    let mut first = DocumentVectors::distributed_memory(2, 6, 8, Device::Cpu).unwrap();
    let mut model = DocumentModel::new(&first, 0.1).unwrap();
    let zeros = |shape: &[i64]| Tensor::zeros(shape, (Kind::Int64, Device::Cpu));
    let mut step = |doc: &[i64], context: Option<&[i64]>, noise: &[i64]| {
        let context = context.map(zeros);
        model.step(DocumentExamples {
            doc_ids: &zeros(doc),
            context_ids: context.as_ref(),
            target_noise_ids: &zeros(noise),
        })
    };
    assert!(step(&[3], Some(&[3, 2]), &[3, 2]).is_ok());
    assert_shape(step(&[3, 1], Some(&[3, 2]), &[3, 2]), "doc_ids");
    assert_shape(step(&[3], Some(&[1, 2]), &[3, 2]), "context_ids");
    assert_shape(step(&[3], None, &[3, 2]), "context_ids");
    assert_shape(step(&[3], Some(&[3, 2]), &[1, 2]), "target_noise_ids");
    assert_shape(step(&[3], Some(&[3, 2]), &[3, 1]), "target_noise_ids");
    let six = Tensor::from_slice(&[6_i64]);
    let unknown = DocumentExamples {
        doc_ids: &six,
        context_ids: Some(&zeros(&[1, 2])),
        target_noise_ids: &zeros(&[1, 2]),
    };
    assert!(matches!(model.step(unknown), Err(Error::Torch { .. })));
    first.words = Some(Tensor::zeros([5, 8], options));
    assert!(matches!(DocumentModel::new(&first, 0.1), Err(Error::ExampleShape { .. })));
    first.outputs = Tensor::zeros([7, 6], options);
    assert!(matches!(DocumentModel::new(&first, 0.1), Err(Error::ExampleShape { .. })));
}
