import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { propertyRuns } from '../../support/propertyRuns.js';
import { randomCalls, randomRules } from '../../support/randomRuleCases.js';
import { readRuleCases, replayVerdicts } from '../../support/ruleCases.js';
import { sdkVerdicts } from '../../support/sdkVerdicts.js';

const { prices, cases } = readRuleCases();

describe('rules in the JavaScript package', () => {
  it.each(cases)('the shared table: $name', (one) => {
    const verdicts = sdkVerdicts(
      one.rules,
      one.calls.map(({ call }) => call),
      prices,
    );
    expect(verdicts).toEqual(one.calls.map(({ expected }) => expected));
  });

  it("judges random calls as the API's replay does", () => {
    fc.assert(
      fc.property(randomRules, randomCalls, (drawnRules, drawnCalls) => {
        expect(sdkVerdicts(drawnRules, drawnCalls, prices)).toEqual(
          replayVerdicts(drawnRules, drawnCalls, prices),
        );
      }),
      { numRuns: propertyRuns(300) },
    );
  });
});
