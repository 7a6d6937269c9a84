export { TrueupBlockedError } from './calls.js';
export { type Labels, labeled, withLabels } from './labels.js';
export type { ReporterStats } from './reporter.js';
export { flush, observe, ready, Trueup, type TrueupOptions, type VerdictNote } from './trueup.js';
