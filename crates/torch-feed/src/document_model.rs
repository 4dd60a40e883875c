//! Doc2Vec over tensors: PV-DM and PV-DBOW by negative sampling, as PyTorch programs train it.
//!
//! The model, its loss and its optimizer are those of Dragon's Doc2Vec example: vectors of
//! documents `D` (documents x dimension) and words `W` (words x dimension) that begin with normal
//! random numbers, and outputs `O` (dimension x words) that begin with zeros. An example with
//! document `d`, context words `c`, target `t` and `k` noise words has the scores
//! `x . O[:, [t, noise]]` with `x = D[d] + sum of W[c]`, in PV-DBOW with `x = D[d]`. The loss is
//! the mean over the examples of `-log s(score of t) - (sum of log s(-score of noise)) / k` with
//! the logistic function `s`: Mikolov et al., "Distributed Representations of Words and Phrases and
//! their Compositionality" (2013), equation 4, except that it divides by `k`.

use tch::nn::VarStore;
use tch::{Device, Kind, TchError, Tensor, no_grad};

use crate::adam::Adam;
use crate::error::Error;

/// Doc2Vec and its optimizer.
#[derive(Debug)]
pub struct DocumentModel {
    documents: Tensor,
    /// None in PV-DBOW.
    words: Option<Tensor>,
    outputs: Tensor,
    /// Owns the parameters, too, by name.
    adam: Adam,
}

/// Vectors that a [`DocumentModel`] begins with, of 32-bit floats.
#[derive(Debug)]
pub struct DocumentVectors {
    /// Documents x dimension.
    pub documents: Tensor,
    /// Words x dimension, for PV-DM. None makes the model PV-DBOW.
    pub words: Option<Tensor>,
    /// Dimension x words.
    pub outputs: Tensor,
}

/// Examples of a batch: targets, one row each. All numbers are int64, on the model's device.
#[derive(Debug, Clone, Copy)]
pub struct DocumentExamples<'a> {
    /// The document of each target: examples.
    pub doc_ids: &'a Tensor,
    /// The words around each target: examples x words of context. PV-DBOW ignores it.
    pub context_ids: Option<&'a Tensor>,
    /// Each target, then its noise words: examples x (1 + noise words).
    pub target_noise_ids: &'a Tensor,
}

impl DocumentVectors {
    /// PV-DM as in Dragon's example: normal random numbers, and zeros for the outputs. torch's
    /// generator draws them, which [`tch::manual_seed`] seeds.
    ///
    /// # Errors
    /// torch's errors: no memory.
    pub fn distributed_memory(
        n_documents: i64,
        n_words: i64,
        dimension: i64,
        device: Device,
    ) -> Result<Self, Error> {
        let words = Tensor::f_randn([n_words, dimension], (Kind::Float, device))
            .map_err(Error::torch("the vectors of words"))?;
        let others = Self::bag_of_words(n_documents, n_words, dimension, device)?;
        Ok(Self { words: Some(words), ..others })
    }

    /// PV-DBOW: the same without vectors of words.
    ///
    /// # Errors
    /// torch's errors: no memory.
    pub fn bag_of_words(
        n_documents: i64,
        n_words: i64,
        dimension: i64,
        device: Device,
    ) -> Result<Self, Error> {
        let options = (Kind::Float, device);
        let make = || -> Result<Self, TchError> {
            let documents = Tensor::f_randn([n_documents, dimension], options)?;
            let outputs = Tensor::f_zeros([dimension, n_words], options)?;
            Ok(Self { documents, words: None, outputs })
        };
        make().map_err(Error::torch("the vectors of documents"))
    }
}

impl DocumentModel {
    /// Makes a model from its first vectors, which are copied. Dragon's example has a learning rate
    /// of 0.1.
    ///
    /// # Errors
    /// - [`Error::ExampleShape`]: the vectors differ in their dimension or their number of words.
    /// - torch's errors: no memory.
    pub fn new(first: &DocumentVectors, learning_rate: f64) -> Result<Self, Error> {
        let [_, dimension] = two_sizes("the vectors of documents", &first.documents)?;
        let [output_dimension, n_words] = two_sizes("the outputs", &first.outputs)?;
        if output_dimension != dimension {
            let expected = format!("[{dimension}, words], with the dimension of the documents");
            return Err(wrong("the outputs", expected, &first.outputs));
        }
        if let Some(words) = first.words.as_ref().filter(|of| of.size() != [n_words, dimension]) {
            let expected = format!("[{n_words}, {dimension}], with the outputs' words");
            return Err(wrong("the vectors of words", expected, words));
        }
        let variables = VarStore::new(first.documents.device());
        let copy = |name: &str, from: &Tensor| variables.root().f_var_copy(name, from);
        let copied = || -> Result<_, TchError> {
            let words = first.words.as_ref().map(|words| copy("words", words)).transpose()?;
            Ok((copy("documents", &first.documents)?, words, copy("outputs", &first.outputs)?))
        };
        let (documents, words, outputs) = copied().map_err(Error::torch("a document model"))?;
        Ok(Self { documents, words, outputs, adam: Adam::new(&variables, learning_rate) })
    }

    /// Trains on a batch with one step of Adam. Returns the loss before the step, on the device.
    /// Reading it waits for the device.
    ///
    /// # Errors
    /// - [`Error::ExampleShape`]: the tensors do not fit together.
    /// - torch's errors: a document or word out of range, no memory.
    pub fn step(&mut self, examples: DocumentExamples<'_>) -> Result<Tensor, Error> {
        let sizes = self.check(examples)?;
        self.train(examples, sizes).map_err(Error::torch("a step of a document model"))
    }

    /// The mean loss of examples.
    ///
    /// # Errors
    /// Those of [`step`](Self::step).
    pub fn loss(&self, examples: DocumentExamples<'_>) -> Result<Tensor, Error> {
        let sizes = self.check(examples)?;
        no_grad(|| self.mean_loss(examples, sizes))
            .map_err(Error::torch("the loss of a document model"))
    }

    /// The vectors of documents: documents x dimension, sharing memory with the model.
    pub fn documents(&self) -> Tensor {
        self.documents.detach()
    }

    /// The vectors of words: words x dimension, sharing memory with the model. None in PV-DBOW.
    pub fn words(&self) -> Option<Tensor> {
        self.words.as_ref().map(Tensor::detach)
    }

    /// The outputs: dimension x words, sharing memory with the model.
    pub fn outputs(&self) -> Tensor {
        self.outputs.detach()
    }

    /// Refuses shapes that torch would broadcast. Returns the numbers of examples, and of
    /// candidates of each.
    fn check(&self, examples: DocumentExamples<'_>) -> Result<[i64; 2], Error> {
        let DocumentExamples { doc_ids, context_ids, target_noise_ids } = examples;
        let [n_examples] = doc_ids.size()[..] else {
            return Err(wrong("doc_ids", "[examples]".to_owned(), doc_ids));
        };
        let sizes = match target_noise_ids.size()[..] {
            [n, n_candidates] if n == n_examples && 2 <= n_candidates => [n, n_candidates],
            _ => {
                let expected = format!("[{n_examples}, 1 + noise words], with a noise word");
                return Err(wrong("target_noise_ids", expected, target_noise_ids));
            }
        };
        let expected = format!("[{n_examples}, words of context]");
        match (&self.words, context_ids) {
            (None, _) => Ok(sizes),
            (Some(_), Some(ids)) if matches!(ids.size()[..], [n, _] if n == n_examples) => {
                Ok(sizes)
            }
            (Some(_), Some(ids)) => Err(wrong("context_ids", expected, ids)),
            (Some(_), None) => {
                Err(Error::ExampleShape { what: "context_ids", expected, found: Vec::new() })
            }
        }
    }

    fn mean_loss(
        &self,
        examples: DocumentExamples<'_>,
        [n_examples, n_candidates]: [i64; 2],
    ) -> Result<Tensor, TchError> {
        let DocumentExamples { doc_ids, context_ids, target_noise_ids } = examples;
        let mut hidden = self.documents.f_index_select(0, doc_ids)?;
        if let (Some(words), Some(context_ids)) = (&self.words, context_ids) {
            let context = Tensor::f_embedding(words, context_ids, -1, false, false)?;
            let context = context.f_sum_dim_intlist([1_i64].as_slice(), false, Kind::Float)?;
            hidden = hidden.f_add(&context)?;
        }
        // examples x dimension x candidates
        let outputs = self
            .outputs
            .f_index_select(1, &target_noise_ids.f_view([-1])?)?
            .f_view([-1, n_examples, n_candidates])?
            .f_permute([1, 0, 2])?;
        let scores = hidden.f_unsqueeze(1)?.f_bmm(&outputs)?.f_squeeze_dim(1)?;
        let target = scores.f_select(1, 0)?.f_log_sigmoid()?;
        let noise = scores.f_narrow(1, 1, n_candidates - 1)?.f_neg()?.f_log_sigmoid()?;
        let noise = noise.f_sum_dim_intlist([1_i64].as_slice(), false, Kind::Float)?;
        let noise = noise.f_div_scalar(n_candidates - 1)?;
        target.f_add(&noise)?.f_sum(Kind::Float)?.f_div_scalar(n_examples)?.f_neg()
    }

    fn train(
        &mut self,
        examples: DocumentExamples<'_>,
        sizes: [i64; 2],
    ) -> Result<Tensor, TchError> {
        let loss = self.mean_loss(examples, sizes)?;
        self.adam.minimise(&loss)
    }
}

fn two_sizes(what: &'static str, tensor: &Tensor) -> Result<[i64; 2], Error> {
    match tensor.size()[..] {
        [rows, columns] => Ok([rows, columns]),
        _ => Err(wrong(what, "two dimensions".to_owned(), tensor)),
    }
}

fn wrong(what: &'static str, expected: String, found: &Tensor) -> Error {
    Error::ExampleShape { what, expected, found: found.size() }
}
