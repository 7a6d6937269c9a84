import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { propertyRuns } from '../../support/propertyRuns.js';
import { LineProgram } from '../../support/python.js';
import { randomCalls, randomRules } from '../../support/randomRuleCases.js';
import {
  type CaseCall,
  type CaseVerdict,
  readRuleCases,
  replayVerdicts,
  type ServedRule,
} from '../../support/ruleCases.js';
import { sdkVerdicts } from '../../support/sdkVerdicts.js';

const { prices, cases } = readRuleCases();

let python: LineProgram;
beforeAll(() => {
  python = new LineProgram('test/sdk/python/programs/judge.py');
});
afterAll(() => python?.close());

const pythonVerdicts = (rules: readonly ServedRule[], calls: readonly CaseCall[]) =>
  python.ask<CaseVerdict[]>({ rules, calls, prices });

describe('rules in the Python package', () => {
  it.each(cases)('the shared table: $name', async (one) => {
    const verdicts = await pythonVerdicts(
      one.rules,
      one.calls.map(({ call }) => call),
    );
    expect(verdicts).toEqual(one.calls.map(({ expected }) => expected));
  });

  it("judges random calls as the API's replay and the JavaScript package do", async () => {
    await fc.assert(
      fc.asyncProperty(randomRules, randomCalls, async (rules, calls) => {
        const verdicts = await pythonVerdicts(rules, calls);
        expect(verdicts).toEqual(replayVerdicts(rules, calls, prices));
        expect(verdicts).toEqual(sdkVerdicts(rules, calls, prices));
      }),
      { numRuns: propertyRuns(300) },
    );
  });
});
