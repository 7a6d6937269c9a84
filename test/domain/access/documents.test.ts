import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { composeKey, KEY_PATTERN, ROLE_SCOPES, ROLES, SCOPES } from '../../../domain/access/keyRules.js';

const PAGE = readFileSync(path.resolve(import.meta.dirname, '../../../docs/access.md'), 'utf8');
const KEY = composeKey('0123456789', 'aB3'.repeat(15).slice(0, 43));

describe('the page about access', () => {
  it('has each scope in the order of the code, with the roles that can hold it', () => {
    const rows = [...PAGE.matchAll(/^\| `([a-z:]+)` \| [^|]+ \|(.+)\|$/gm)].map(
      ([, scope = '', marks = '']) => [scope, ...marks.split('|').map((mark) => mark.trim())],
    );
    expect(rows).toEqual(
      SCOPES.map((scope) => [scope, ...ROLES.map((role) => (ROLE_SCOPES[role].has(scope) ? 'yes' : ''))]),
    );
    expect(PAGE).toContain(`| scope | what it covers | ${ROLES.join(' | ')} |`);
  });

  it('contains a pattern for secret scanners that finds keys in a text, and nothing shorter or longer', () => {
    const patterns = [
      ...[...PAGE.matchAll(/^(\\b.+\\b)$/gm)].map(([, pattern = '']) => pattern),
      ...[...PAGE.matchAll(/^regex = '''(.+)'''$/gm)].map(([, pattern = '']) => pattern),
      ...[...PAGE.matchAll(/"pattern": ("\/.+\/")/g)].map(([, text = '']) =>
        (JSON.parse(text) as string).slice(1, -1),
      ),
    ];
    expect(patterns.length).toBe(3);
    expect(new Set(patterns).size).toBe(1);
    const pattern = new RegExp(patterns[0] ?? '');
    expect(KEY).toMatch(KEY_PATTERN);
    expect(pattern.exec(`export KEY="${KEY}";`)?.[0]).toBe(KEY);
    for (const other of [KEY.slice(0, -1), `${KEY}0`, KEY.replace('live', 'test')])
      expect(pattern.test(`KEY=${other} `), other).toBe(false);
  });
});
