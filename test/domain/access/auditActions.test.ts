import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { AUDIT_ACTIONS } from '../../../domain/access/auditLog.js';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const sources = ['activities', 'api', 'bin', 'db', 'usecases'].flatMap((room) =>
  readdirSync(path.join(ROOT, room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(path.join(ROOT, room, name), 'utf8')),
);

describe('the actions of the audit log', () => {
  it('are those of docs/audit-log.md, with the same sentences', () => {
    const page = readFileSync(path.join(ROOT, 'docs/audit-log.md'), 'utf8');
    const listed = [...page.matchAll(/^\| `([a-z_]+\.[a-z_]+)` \| (.+) \|$/gm)].map(
      ([, action, sentence]) => [action, sentence] as const,
    );
    expect(listed).toEqual(Object.entries(AUDIT_ACTIONS));
  });

  it('are each written somewhere', () => {
    const unused = Object.keys(AUDIT_ACTIONS).filter(
      (action) => !sources.some((source) => source.includes(`'${action}'`)),
    );
    expect(unused).toEqual([]);
  });
});
