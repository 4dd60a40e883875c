//! The terms in obs: cell types, tissues, assays and so on, spelled like in the Census.

/// A cell type: its name and its identifier, from the Cell Ontology (CC BY 4.0).
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellType {
    pub(crate) name: &'static str,
    pub(crate) ontology_term_id: &'static str,
}

const fn cell_type(ontology_term_id: &'static str, name: &'static str) -> CellType {
    CellType { name, ontology_term_id }
}

/// The cell types from which datasets draw their mix.
pub(crate) const CELL_TYPES: [CellType; 100] = [
    cell_type("CL:0000624", "CD4-positive, alpha-beta T cell"),
    cell_type("CL:0000625", "CD8-positive, alpha-beta T cell"),
    cell_type("CL:0000897", "CD4-positive, alpha-beta memory T cell"),
    cell_type("CL:0000909", "CD8-positive, alpha-beta memory T cell"),
    cell_type("CL:0000895", "naive thymus-derived CD4-positive, alpha-beta T cell"),
    cell_type("CL:0000900", "naive thymus-derived CD8-positive, alpha-beta T cell"),
    cell_type("CL:0000913", "effector memory CD8-positive, alpha-beta T cell"),
    cell_type("CL:0000815", "regulatory T cell"),
    cell_type("CL:0000798", "gamma-delta T cell"),
    cell_type("CL:0000084", "T cell"),
    cell_type("CL:0000623", "natural killer cell"),
    cell_type("CL:0000236", "B cell"),
    cell_type("CL:0000788", "naive B cell"),
    cell_type("CL:0000787", "memory B cell"),
    cell_type("CL:0000844", "germinal center B cell"),
    cell_type("CL:0000786", "plasma cell"),
    cell_type("CL:0000980", "plasmablast"),
    cell_type("CL:0001065", "innate lymphoid cell"),
    cell_type("CL:0000860", "classical monocyte"),
    cell_type("CL:0000875", "non-classical monocyte"),
    cell_type("CL:0001054", "CD14-positive monocyte"),
    cell_type("CL:0000235", "macrophage"),
    cell_type("CL:0000583", "alveolar macrophage"),
    cell_type("CL:0000091", "Kupffer cell"),
    cell_type("CL:0000129", "microglial cell"),
    cell_type("CL:0000990", "conventional dendritic cell"),
    cell_type("CL:0000784", "plasmacytoid dendritic cell"),
    cell_type("CL:0000453", "Langerhans cell"),
    cell_type("CL:0000097", "mast cell"),
    cell_type("CL:0000775", "neutrophil"),
    cell_type("CL:0000767", "basophil"),
    cell_type("CL:0000771", "eosinophil"),
    cell_type("CL:0000233", "platelet"),
    cell_type("CL:0000556", "megakaryocyte"),
    cell_type("CL:0000232", "erythrocyte"),
    cell_type("CL:0000765", "erythroblast"),
    cell_type("CL:0000037", "hematopoietic stem cell"),
    cell_type("CL:0000809", "double-positive, alpha-beta thymocyte"),
    cell_type("CL:0000540", "neuron"),
    cell_type("CL:0000679", "glutamatergic neuron"),
    cell_type("CL:0000617", "GABAergic neuron"),
    cell_type("CL:4023040", "L2/3-6 intratelencephalic projecting glutamatergic neuron"),
    cell_type("CL:4023013", "corticothalamic-projecting glutamatergic cortical neuron"),
    cell_type("CL:0000700", "dopaminergic neuron"),
    cell_type("CL:0000121", "Purkinje cell"),
    cell_type("CL:0001031", "cerebellar granule cell"),
    cell_type("CL:0000127", "astrocyte"),
    cell_type("CL:0000128", "oligodendrocyte"),
    cell_type("CL:0002453", "oligodendrocyte precursor cell"),
    cell_type("CL:0002573", "Schwann cell"),
    cell_type("CL:0000604", "retinal rod cell"),
    cell_type("CL:0000573", "retinal cone cell"),
    cell_type("CL:0000636", "Mueller cell"),
    cell_type("CL:0000561", "amacrine cell"),
    cell_type("CL:0000057", "fibroblast"),
    cell_type("CL:0000499", "stromal cell"),
    cell_type("CL:0000134", "mesenchymal stem cell"),
    cell_type("CL:0000186", "myofibroblast cell"),
    cell_type("CL:0000669", "pericyte"),
    cell_type("CL:0000192", "smooth muscle cell"),
    cell_type("CL:0000359", "vascular associated smooth muscle cell"),
    cell_type("CL:0000594", "skeletal muscle satellite cell"),
    cell_type("CL:0000746", "cardiac muscle cell"),
    cell_type("CL:0000136", "adipocyte"),
    cell_type("CL:0000077", "mesothelial cell"),
    cell_type("CL:0000138", "chondrocyte"),
    cell_type("CL:0000062", "osteoblast"),
    cell_type("CL:0000115", "endothelial cell"),
    cell_type("CL:0002144", "capillary endothelial cell"),
    cell_type("CL:1000413", "endothelial cell of artery"),
    cell_type("CL:0002543", "vein endothelial cell"),
    cell_type("CL:0002138", "endothelial cell of lymphatic vessel"),
    cell_type("CL:0000066", "epithelial cell"),
    cell_type("CL:0000312", "keratinocyte"),
    cell_type("CL:0000646", "basal cell"),
    cell_type("CL:0000148", "melanocyte"),
    cell_type("CL:0000064", "ciliated cell"),
    cell_type("CL:0000158", "club cell"),
    cell_type("CL:0000160", "goblet cell"),
    cell_type("CL:0000584", "enterocyte"),
    cell_type("CL:0000164", "enteroendocrine cell"),
    cell_type("CL:0019032", "intestinal tuft cell"),
    cell_type("CL:0000510", "paneth cell"),
    cell_type("CL:0000182", "hepatocyte"),
    cell_type("CL:1000488", "cholangiocyte"),
    cell_type("CL:0000169", "type B pancreatic cell"),
    cell_type("CL:0000171", "pancreatic A cell"),
    cell_type("CL:0000173", "pancreatic D cell"),
    cell_type("CL:0002064", "pancreatic acinar cell"),
    cell_type("CL:0002079", "pancreatic ductal cell"),
    cell_type("CL:1000849", "kidney distal convoluted tubule epithelial cell"),
    cell_type("CL:0000653", "podocyte"),
    cell_type("CL:0002062", "pulmonary alveolar type 1 cell"),
    cell_type("CL:0002063", "pulmonary alveolar type 2 cell"),
    cell_type("CL:0000018", "spermatid"),
    cell_type("CL:0000216", "Sertoli cell"),
    cell_type("CL:0000178", "Leydig cell"),
    cell_type("CL:0000023", "oocyte"),
    cell_type("CL:0000501", "granulosa cell"),
    cell_type("CL:0000351", "trophoblast cell"),
];

/// General tissues with the tissues that belong to them.
pub(crate) const TISSUES: [(&str, &[&str]); 12] = [
    ("blood", &["blood"]),
    ("brain", &["cerebral cortex", "cerebellum", "hippocampal formation", "substantia nigra"]),
    ("lung", &["lung", "lung parenchyma", "bronchus"]),
    ("heart", &["heart left ventricle", "heart right ventricle", "interventricular septum"]),
    ("kidney", &["cortex of kidney", "renal medulla"]),
    ("liver", &["liver", "caudate lobe of liver"]),
    ("small intestine", &["ileum", "jejunum", "duodenum"]),
    ("colon", &["ascending colon", "sigmoid colon"]),
    ("skin of body", &["skin of trunk", "skin of face"]),
    ("pancreas", &["islet of Langerhans", "exocrine pancreas"]),
    ("breast", &["breast", "upper outer quadrant of breast"]),
    ("eye", &["retina", "cornea"]),
];

/// Assays with their suspension type: whole cells or nuclei.
pub(crate) const ASSAYS: [(&str, &str); 7] = [
    ("10x 3' v3", "cell"),
    ("10x 3' v2", "cell"),
    ("10x 3' v3", "nucleus"),
    ("10x 5' v1", "cell"),
    ("10x multiome", "nucleus"),
    ("sci-RNA-seq", "nucleus"),
    ("Drop-seq", "cell"),
];

/// Diseases; the first is more frequent than all others together.
pub(crate) const DISEASES: [&str; 8] = [
    "normal",
    "COVID-19",
    "Alzheimer disease",
    "breast carcinoma",
    "Crohn disease",
    "dilated cardiomyopathy",
    "lung adenocarcinoma",
    "type 2 diabetes mellitus",
];

/// Sexes.
pub(crate) const SEXES: [&str; 3] = ["female", "male", "unknown"];

/// Ethnicities as reported by donors.
pub(crate) const ETHNICITIES: [&str; 6] = [
    "unknown",
    "European",
    "African American",
    "East Asian",
    "Hispanic or Latin American",
    "South Asian",
];

/// Stages of development.
pub(crate) const DEVELOPMENT_STAGES: [&str; 10] = [
    "unknown",
    "adult stage",
    "15th week post-fertilization stage",
    "newborn stage (0-28 days)",
    "8-year-old stage",
    "25-year-old stage",
    "34-year-old stage",
    "47-year-old stage",
    "60-year-old stage",
    "73-year-old stage",
];

/// Types of suspensions.
pub(crate) const SUSPENSION_TYPES: [&str; 2] = ["cell", "nucleus"];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_word_stands_twice_where_it_becomes_a_category() {
        let unique = |words: &[&str]| words.iter().collect::<HashSet<_>>().len() == words.len();
        assert!(unique(&CELL_TYPES.map(|cell_type| cell_type.name)));
        assert!(unique(&CELL_TYPES.map(|cell_type| cell_type.ontology_term_id)));
        assert!(unique(&TISSUES.map(|(general, _)| general)));
        assert!(unique(
            &TISSUES.iter().flat_map(|(_, tissues)| *tissues).copied().collect::<Vec<_>>()
        ));
        assert!(unique(&DISEASES) && unique(&SEXES) && unique(&ETHNICITIES));
        assert!(unique(&DEVELOPMENT_STAGES) && unique(&SUSPENSION_TYPES));
        assert!(ASSAYS.iter().all(|(_, suspension)| SUSPENSION_TYPES.contains(suspension)));
    }
}
