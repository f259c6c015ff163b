//! Quantiles as reports give them.

use serde::Serialize;

use crate::store::rollup::values::{Costs, Together, Values};

/// Nearest-rank quantiles of whole numbers. All absent but `n` when there are none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Quantiles<T> {
    /// How many.
    pub n: u64,
    /// The least.
    pub min: Option<T>,
    /// Half are no greater.
    pub p50: Option<T>,
    /// Nine in ten are no greater.
    pub p90: Option<T>,
    /// Nineteen in twenty are no greater.
    pub p95: Option<T>,
    /// Ninety-nine in a hundred are no greater.
    pub p99: Option<T>,
    /// The greatest.
    pub max: Option<T>,
}

impl From<&Values> for Quantiles<u64> {
    fn from(values: &Values) -> Self {
        let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(|q| values.quantile(q));
        Self { n: values.count(), min: values.min(), p50, p90, p95, p99, max: values.max() }
    }
}

impl From<&Together<'_>> for Quantiles<u64> {
    fn from(values: &Together<'_>) -> Self {
        let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(|q| values.quantile(q));
        Self { n: values.count(), min: values.min(), p50, p90, p95, p99, max: values.max() }
    }
}

impl From<&Costs> for Quantiles<f64> {
    fn from(costs: &Costs) -> Self {
        let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(|q| costs.quantile(q));
        Self { n: costs.count(), min: costs.min(), p50, p90, p95, p99, max: costs.max() }
    }
}
