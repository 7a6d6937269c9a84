import fc from 'fast-check';
import { expect, it } from 'vitest';
import { propertyRuns } from '../../../../support/propertyRuns.js';
import { findingsOf, isBetween, type Line, type Lines, part } from './support.js';

const CLASSES = ['input', 'cache_read', 'output'] as const;
/** How often a class is counted, and at how many hundredths of its price. */
const change = fc.record({
  times: fc.bigInt({ min: 1n, max: 5n }),
  percent: fc.constantFrom(0n, 1n, 10n, 50n, 100n, 200n),
});
const changed = (
  { quantity, amountPico }: Line,
  { times, percent }: { times: bigint; percent: bigint },
): Line => ({
  quantity: quantity * times,
  amountPico: (amountPico * times * percent) / 100n,
});

it('no finding says that less than nothing would have been right, of a day or of a line', () => {
  fc.assert(
    fc.property(
      fc.record({ input: change, cache_read: change, output: change }),
      fc.constantFrom([8, 12], [0, 19], [10, 19], [9, 9]),
      fc.constantFrom(1, 0.8, 0.5, 1.6),
      (changes, [first = 0, last = 0], seen) => {
        const findings = findingsOf({
          bill: (lines, at) =>
            isBetween(at, first, last)
              ? (Object.fromEntries(
                  CLASSES.map((name) => [name, changed(lines[name], changes[name])]),
                ) as unknown as Lines)
              : lines,
          seen: (use) => part(use, seen),
        });
        for (const { days, lines, kind } of findings)
          for (const { expectedPico } of [...days, ...lines])
            expect(expectedPico >= 0n, `${kind}: ${expectedPico}`).toBe(true);
      },
    ),
    {
      numRuns: propertyRuns(60),
      examples: [
        [
          {
            input: { times: 1n, percent: 100n },
            cache_read: { times: 1n, percent: 100n },
            output: { times: 3n, percent: 0n },
          },
          [0, 19],
          1,
        ],
      ],
    },
  );
});
