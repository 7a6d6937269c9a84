import { type BookTotals, sumBooks } from '../../usecases/installation/backup/bookTotals.js';

/** `12.3 MB`, in powers of 1000, as disks are sold. */
export function inBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes, 0];
  while (value >= 1_000 && unit < units.length - 1) [value, unit] = [value / 1_000, unit + 1];
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

export function inSeconds(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(1)} s`;
}

/** `1,234 calls, cost 12.5 USD, billed 12 USD, 1 organization`. */
export function describeBooks(organizations: readonly BookTotals[]): string {
  const { calls, costUsd, billedUsd } = sumBooks(organizations);
  const parts = [`${calls.toLocaleString('en-US')} calls`, `cost ${costUsd} USD`];
  if (billedUsd !== null) parts.push(`billed ${billedUsd} USD`);
  parts.push(`${organizations.length} organization${organizations.length === 1 ? '' : 's'}`);
  return parts.join(', ');
}

/** Progress of long work: one line that is overwritten, on a terminal only. */
export class ProgressLine {
  readonly #isTerminal = process.stderr.isTTY === true;
  #shownMs = Number.NEGATIVE_INFINITY;

  show(text: string): void {
    if (!this.#isTerminal || performance.now() - this.#shownMs < 200) return;
    this.#shownMs = performance.now();
    process.stderr.write(`\r  … ${text.padEnd(60)}`);
  }

  clear(): void {
    if (this.#isTerminal) process.stderr.write(`\r${' '.repeat(66)}\r`);
  }
}

/**
 * Ends the process on Ctrl-C and SIGTERM through its exit handlers, which remove partial files. Nothing else needs
 * cleanup: a closed connection ends a backup in Postgres, and rolls an import back.
 */
export function endOnSignal(): void {
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
}
