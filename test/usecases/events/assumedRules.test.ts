import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { putPolicy } from '../../../db/policies/policies.js';
import { AssumedRules } from '../../../usecases/events/assumedRules.js';
import { createTestOrganization, type TestOrganization } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

async function anOrganization(...regexes: string[]): Promise<TestOrganization> {
  const org = await createTestOrganization(test.database);
  if (regexes.length > 0)
    await putPolicy(
      org.orgDb,
      { type: 'banned_patterns', config: { regexes }, enabled: true, skipped: [] },
      'key_test',
    );
  return org;
}

describe('the cache of assumed rules', () => {
  it('compiles once for all organizations with the same policies, and drops the rules with the last of them', async () => {
    let compiled = 0;
    const rules = new AssumedRules(() => {
      compiled += 1;
    });
    const organizations = await Promise.all([1, 2, 3].map(() => anOrganization('same', '(?i)ones')));
    const judges = [];
    for (const { orgDb } of organizations) judges.push((await rules.of(orgDb)).judges);
    expect(new Set(judges).size).toBe(1);
    expect(compiled).toBe(1);
    const { bytes } = rules.size;
    for (const { orgId } of organizations.slice(1)) rules.forget(orgId);
    expect(rules.size).toEqual({ organizations: 1, bytes });
    rules.forget(organizations[0]?.orgId ?? '');
    rules.forget(organizations[0]?.orgId ?? '');
    expect(rules.size).toEqual({ organizations: 0, bytes: 0 });
  });

  it('reads the rules once for many requests at the same time, and counts them once', async () => {
    const rules = new AssumedRules();
    const { orgDb } = await anOrganization('several');
    await Promise.all(Array.from({ length: 10 }, () => rules.of(orgDb)));
    const { organizations, bytes } = rules.size;
    const other = new AssumedRules();
    await other.of(orgDb);
    expect({ organizations, bytes }).toEqual(other.size);
  });

  it('stays within its memory, whatever organizations want: those read first are read and compiled again', async () => {
    let compiled = 0;
    const organizations = await Promise.all(
      Array.from({ length: 6 }, (_, index) => anOrganization(`pattern-${index}`)),
    );
    const [first, ...others] = organizations as [TestOrganization, ...TestOrganization[]];
    const alone = new AssumedRules();
    await alone.of(first.orgDb);
    const each = alone.size.bytes;
    const rules = new AssumedRules(() => {
      compiled += 1;
    }, each * 3);
    for (const { orgDb } of [first, ...others]) {
      await rules.of(orgDb);
      expect(rules.size.bytes).toBeLessThanOrEqual(each * 3 + 100);
    }
    expect(rules.size.organizations).toBeLessThan(6);
    expect(compiled).toBe(6);
    await rules.of(first.orgDb);
    expect(compiled).toBe(7);
    // Rules that exceed the whole cache still judge calls.
    const small = new AssumedRules(undefined, 1);
    expect((await small.of(first.orgDb)).judges.isEmpty).toBe(false);
    expect(small.size.organizations).toBe(1);
  });

  it('holds nothing of an organization without policies', async () => {
    const rules = new AssumedRules();
    const { judges } = await rules.of((await anOrganization()).orgDb);
    expect([judges.isEmpty, rules.size.bytes]).toEqual([true, 0]);
  });
});
