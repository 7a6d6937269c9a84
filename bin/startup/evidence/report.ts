/** What was checked, as a table; what differs, with the first difference first. */
import type { Difference } from './difference.js';
import type { Verified } from './verifyPack.js';

export function reportOf({ checks, differences, claim }: Verified): { text: string; isWhole: boolean } {
  const width = Math.max(...checks.map(({ what }) => what.length), 0);
  const rows = checks.map(({ what, count, note }) =>
    `  ${what.padEnd(width)}  ${String(count).padStart(8)}${note === '' ? '' : `   ${note}`}`.trimEnd(),
  );
  // A line tells more than the sha256 of a file.
  const [first] = [...differences].sort(
    (a, b) => Number(a.line === undefined) - Number(b.line === undefined),
  );
  const also = differences.filter((one) => one !== first);
  const end = first
    ? ['', `DIFFERENCE ${sentenceOf(first)}`, ...also.map((one) => `  also: ${sentenceOf(one)}`)]
    : ['', 'Everything in the pack agrees.'];
  return {
    text: `${[...(claim === undefined ? [] : [claim, '']), ...rows, ...end].join('\n')}\n`,
    isWhole: differences.length === 0,
  };
}

const sentenceOf = ({ file, line, message }: Difference): string =>
  `${file}${line === undefined ? '' : `, line ${line}`}: ${message}.`;
