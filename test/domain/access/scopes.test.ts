import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ADMIN_ONLY_SCOPES,
  allowsScope,
  assertGrants,
  assertPossibleTerms,
  givenByChange,
  isLastingAdmin,
  READ_SCOPES,
  ROLE_SCOPES,
  ROLES,
  SCOPES,
  scopesOf,
} from '../../../domain/access/keyRules.js';

const role = fc.constantFrom(...ROLES);
const scope = fc.constantFrom(...SCOPES);
const someScopes = fc.uniqueArray(scope, { minLength: 1, maxLength: SCOPES.length });
const narrowing = fc.option(someScopes);
const expiry = fc.option(fc.bigInt({ min: 1n, max: 9n }));
const terms = fc.record({ role, scopes: narrowing, expiresAtMicros: expiry });

describe('a role', () => {
  it('admin holds every scope, and each other role less', () => {
    expect([...ROLE_SCOPES.admin]).toEqual([...SCOPES]);
    for (const other of ROLES.slice(1)) expect(ROLE_SCOPES[other].size).toBeLessThan(SCOPES.length);
  });

  it('member reads everything, keeps the books and drafts claims, brings calls, and decides nothing', () => {
    const writes = [...ROLE_SCOPES.member].filter((held) => !READ_SCOPES.includes(held));
    expect(writes.sort()).toEqual([
      'alerts:write',
      'claims:write',
      'financial:write',
      'ingest',
      'reconciliation:write',
      'reports:write',
    ]);
    for (const read of READ_SCOPES) expect(ROLE_SCOPES.member.has(read), read).toBe(true);
  });

  it('auditor reads everything, prompts and the audit log among it, and never writes', () => {
    expect([...ROLE_SCOPES.auditor].sort()).toEqual([...READ_SCOPES].sort());
    for (const read of ['events:read', 'payloads:read', 'audit:read'] as const)
      expect(ROLE_SCOPES.auditor.has(read)).toBe(true);
    for (const held of ROLE_SCOPES.auditor) expect(held).toMatch(/:read$/);
  });

  it('ingest brings calls and sees nothing', () => {
    expect([...ROLE_SCOPES.ingest]).toEqual(['ingest']);
  });

  it('that is not admin holds no scope that only an admin can hold, and every other scope belongs to a role', () => {
    for (const one of SCOPES) {
      const holders = ROLES.filter((candidate) => ROLE_SCOPES[candidate].has(one));
      expect(holders.length === 1, one).toBe(ADMIN_ONLY_SCOPES.has(one));
    }
    for (const one of ADMIN_ONLY_SCOPES) expect(one).toMatch(/:(write|admin)$/);
  });
});

describe('a key', () => {
  it('never may more than its role, however it is narrowed', () => {
    fc.assert(
      fc.property(role, narrowing, scope, (itsRole, scopes, asked) => {
        const may = allowsScope(itsRole, scopes, asked);
        if (may) expect(ROLE_SCOPES[itsRole].has(asked)).toBe(true);
        expect(may).toBe(scopesOf({ role: itsRole, scopes }).includes(asked));
      }),
    );
  });

  it('that is narrowed further gains nothing', () => {
    fc.assert(
      fc.property(role, someScopes, fc.nat(), scope, (itsRole, scopes, cut, asked) => {
        const fewer = scopes.slice(0, 1 + (cut % scopes.length));
        if (allowsScope(itsRole, fewer, asked)) expect(allowsScope(itsRole, scopes, asked)).toBe(true);
        if (allowsScope(itsRole, scopes, asked)) expect(allowsScope(itsRole, null, asked)).toBe(true);
      }),
    );
  });

  it('can be narrowed to scopes of its role alone; another is named together with the role', () => {
    fc.assert(
      fc.property(role, someScopes, (itsRole, scopes) => {
        const beyond = scopes.find((one) => !ROLE_SCOPES[itsRole].has(one));
        const make = () => assertPossibleTerms({ role: itsRole, scopes, workspaceId: null });
        if (beyond === undefined) expect(make).not.toThrow();
        else expect(make).toThrow(`scopes: the role ${itsRole} cannot hold ${beyond}`);
      }),
    );
  });

  it('of the role admin is for the whole organization', () => {
    const workspaceId = '0199f3a2-c4d5-7e3a-8f00-112233445566';
    for (const itsRole of ROLES) {
      const make = () => assertPossibleTerms({ role: itsRole, scopes: null, workspaceId });
      if (itsRole === 'admin') expect(make).toThrow(/workspace_id: a key of the role admin/);
      else expect(make).not.toThrow();
    }
  });
});

describe('a caller that makes or changes a key', () => {
  it('grants no scope that it does not hold itself, so that no chain of keys ends with more than its first', () => {
    fc.assert(
      fc.property(terms, terms, terms, (first, second, third) => {
        const makes = (maker: typeof first, made: typeof first) => {
          const giver = { allows: (one: never) => allowsScope(maker.role, maker.scopes, one) };
          try {
            assertGrants(giver, scopesOf(made));
            return true;
          } catch {
            return false;
          }
        };
        if (makes(first, second) && makes(second, third)) {
          const held = new Set(scopesOf(first));
          for (const one of scopesOf(third)) expect(held.has(one)).toBe(true);
        }
      }),
    );
  });

  it('grants by a change the scopes that the key did not have, and all its scopes where it then holds for longer', () => {
    fc.assert(
      fc.property(terms, narrowing, expiry, (before, scopes, expiresAtMicros) => {
        const after = { ...before, scopes, expiresAtMicros };
        const had = new Set(scopesOf(before));
        const given = givenByChange(before, after);
        for (const one of scopesOf(after)) if (!had.has(one)) expect(given).toContain(one);
        const ends = (key: typeof before) => key.expiresAtMicros ?? 10n;
        if (ends(after) > ends(before)) expect(given).toEqual(scopesOf(after));
        else expect(given.some((one) => had.has(one))).toBe(false);
      }),
    );
  });

  it('grants nothing by narrowing a key or by ending it earlier', () => {
    expect(
      givenByChange(
        { role: 'admin', scopes: null, expiresAtMicros: null },
        { role: 'admin', scopes: ['org:admin'], expiresAtMicros: 5n },
      ),
    ).toEqual([]);
  });
});

describe('a key that an organization can be left with', () => {
  it('is an admin’s, is not narrowed and has no end', () => {
    fc.assert(
      fc.property(terms, (key) => {
        const expected = key.role === 'admin' && key.scopes === null && key.expiresAtMicros === null;
        expect(isLastingAdmin(key)).toBe(expected);
        if (expected) expect(scopesOf(key)).toEqual([...SCOPES]);
      }),
    );
  });
});
