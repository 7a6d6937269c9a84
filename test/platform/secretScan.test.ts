import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseKey } from '../../domain/access/keyRules.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

/** Patterns of secrets: our keys by the published pattern, and those of common services. */
const SECRETS: Readonly<Record<string, RegExp>> = {
  Trueup: /tu_(?:live|test)_[0-9A-Za-z]{10}_[0-9A-Za-z]{49}/g,
  OpenAI: /\bsk-(?!ant-)(?:proj-|admin-|svcacct-)?[A-Za-z0-9_-]{32,}/g,
  Anthropic: /\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{20,}/g,
  AWS: /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g,
  Google: /\bAIza[0-9A-Za-z_-]{35}\b/g,
  GitHub: /\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,})\b/g,
  npm: /\bnpm_[A-Za-z0-9]{36}\b/g,
  Slack: /\bxox[abprs]-[0-9A-Za-z-]{20,}/g,
  Stripe: /\b[sr]k_live_[0-9A-Za-z]{24,}\b/g,
  JWT: /\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g,
  'private key': /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/g,
};

/** Keys for the fakes of providers contain these words; they open nothing. */
const FIXTURE = /Planted|S3cret|Secret/;

const OUTSIDE = new Set(['.git', 'node_modules', 'dist', '.data', 'coverage', '.venv', '__pycache__']);
const FILE_BYTES_MAX = 8_388_608;

function* filesOf(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (OUTSIDE.has(entry.name) || /^dist\.(?:new|old)-/.test(entry.name) || entry.name === '.env') continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesOf(path);
    else if (entry.isFile() && statSync(path).size <= FILE_BYTES_MAX) yield path;
  }
}

function secretsIn(text: string): string[] {
  return Object.entries(SECRETS).flatMap(([kind, pattern]) =>
    [...text.matchAll(pattern)]
      // A key of ours with a wrong checksum is no secret; tests of the format contain many.
      .filter(([found]) => kind !== 'Trueup' || parseKey(found) !== undefined)
      .filter(([found]) => !FIXTURE.test(found))
      .map(([found]) => `${kind}: ${found.slice(0, 14)}…`),
  );
}

describe('the repository', () => {
  it('holds no secret: no key of ours or of a service, no private key', () => {
    const found: string[] = [];
    let files = 0;
    for (const path of filesOf(PROJECT_ROOT)) {
      files += 1;
      for (const secret of secretsIn(readFileSync(path, 'latin1')))
        found.push(`${relative(PROJECT_ROOT, path)} ${secret}`);
    }
    expect(found).toEqual([]);
    expect(files).toBeGreaterThan(500);
  });

  it('is searched by patterns that find', () => {
    const made = [
      `sk-${'proj'}-${'a1'.repeat(20)}`,
      `sk-${'ant'}-api03-${'b2'.repeat(20)}`,
      `${'AKIA'}${'ABCD'.repeat(4)}`,
      `${'ghp'}_${'c3'.repeat(18)}`,
      `-----BEGIN ${'RSA'} PRIVATE KEY-----`,
    ];
    for (const secret of made) expect(secretsIn(`x = "${secret}";`), secret).toHaveLength(1);
  });
});
