use reqtop::*;
use std::io::Read;
#[test]
fn scratch() {
    for name in ["dev-sim", "dev-sim-disagg-http", "fast-flush"] {
        let mut store = store::Store::new(store::Limits::default());
        for kind in ["traces", "logs"] {
            let f = std::fs::File::open(format!("/work/shared/captures/{name}.{kind}.pb.gz")).unwrap();
            let mut bytes = Vec::new();
            flate2::read::MultiGzDecoder::new(f).read_to_end(&mut bytes).unwrap();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let n = lifecycle::packed::varint(&mut rest).unwrap() as usize;
                let (m, r) = rest.split_at(n);
                rest = r;
                let mut batch = lifecycle::batch::Batch::default();
                if kind == "traces" {
                    source::otlp::wire::traces(m, &mut batch).unwrap()
                } else {
                    source::otlp::logs::logs(m, &mut batch).unwrap()
                }
                store.ingest(&batch, 1);
                store.refresh(1);
            }
        }
        store.finish(1);
        println!("== {name} mem {} spans {}", store.memory(), store.counts().spans_kept);
        println!("{}", report::Report::of(&store, Default::default(), None));
    }
}
