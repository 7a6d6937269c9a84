/** The median; for an even number of values the mean of the middle two. NaN for none. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The quantile at `share` (0…1), interpolated linearly. NaN for none. */
export function quantile(values: readonly number[] | Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort();
  const place = (sorted.length - 1) * share;
  const low = sorted[Math.floor(place)] ?? Number.NaN;
  const high = sorted[Math.ceil(place)] ?? Number.NaN;
  return low + (high - low) * (place - Math.floor(place));
}

/** `12,345` */
export function formatCount(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Mebibytes of a byte count. */
export function formatMebibytes(bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MiB`;
}
