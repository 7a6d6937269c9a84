import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import {
  ensureSecretKeyFile,
  replaceSecretKeys,
  secretKeyFile,
} from '../../platform/embedded/secretKeyFile.js';
import {
  findSealingKeyId,
  makeSecretKey,
  open,
  parseSecretKey,
  type SecretKey,
  seal,
} from '../../platform/secretBox.js';
import {
  missingKeySentence,
  parseSecretKeys,
  type SealedCounts,
  SecretKeys,
} from '../../platform/secretKeys.js';
import { StartError } from '../../platform/startError.js';
import { makeTestFolder } from '../support/testFolder.js';

const folder = makeTestFolder('secret-keys');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const aKey = () => parseSecretKey(makeSecretKey()) as SecretKey;
const aBinding = () => ({ orgId: randomUUID(), subjectId: randomUUID(), purpose: 'billing-credentials' });

describe('a sealed text', () => {
  it('opens with its key and for what it was sealed, and shows nothing of itself', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 500, unit: 'binary' }), (text) => {
        const [key, binding] = [aKey(), aBinding()];
        const sealed = seal(key, text, binding);
        expect(open(key, sealed, binding)).toBe(text);
        expect(findSealingKeyId(sealed)).toBe(key.id);
        if (text.length > 8) expect(sealed.includes(Buffer.from(text))).toBe(false);
        expect(seal(key, text, binding).equals(sealed)).toBe(false);
      }),
    );
  });

  it('does not open with another key, nor for another organization, connection or purpose', () => {
    const [key, binding] = [aKey(), aBinding()];
    const sealed = seal(key, 'sk-admin-1', binding);
    expect(open(aKey(), sealed, binding)).toBeUndefined();
    for (const field of ['orgId', 'subjectId', 'purpose'] as const)
      expect(open(key, sealed, { ...binding, [field]: randomUUID() }), field).toBeUndefined();
  });

  it('of which one bit was changed does not open', () => {
    const [key, binding] = [aKey(), aBinding()];
    const sealed = seal(key, 'sk-admin-1', binding);
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(open(key, changed, binding), `bit ${bit}`).toBeUndefined();
    }
    for (const length of [0, 1, 8, 20, sealed.length - 1])
      expect(open(key, sealed.subarray(0, length), binding)).toBeUndefined();
  });
});

describe('keys', () => {
  it('are 32 bytes in base64 or base64url, the current one first; anything else is invalid', () => {
    const bytes = Buffer.alloc(32, 0xfb);
    for (const text of [bytes.toString('base64'), bytes.toString('base64url')])
      expect(parseSecretKeys(text)?.[0]?.bytes.equals(bytes)).toBe(true);
    const [first, second] = [makeSecretKey(), makeSecretKey()];
    for (const between of [',', ', ', '\n', ' '])
      expect(parseSecretKeys(`${first}${between}${second}\n`)?.[0]?.id).toBe(parseSecretKey(first)?.id);
    for (const wrong of [
      '',
      'short',
      bytes.toString('hex'),
      `${first},x`,
      Buffer.alloc(31).toString('base64'),
    ])
      expect(parseSecretKeys(wrong), wrong).toBeUndefined();
    expect(() => SecretKeys.of('nonsense')).toThrow(StartError);
  });

  it('that are missing are named with the remedy, and no key is', () => {
    const keys = SecretKeys.of(makeSecretKey());
    expect(
      missingKeySentence(new Map([[keys.currentId, { connection: 3, webhook: 1 }]]), keys),
    ).toBeUndefined();
    const sentence = missingKeySentence(new Map([['0123456789abcdef', { connection: 2 }]]), keys) ?? '';
    expect(sentence).toMatch(/^wrong or missing secret key: the credentials of 2 billing connections/);
    expect(sentence).toContain('0123456789abcdef');
    expect(sentence).toContain('./trueup secrets rotate --forget-unreadable');
    expect(sentence.split('\n')).toHaveLength(1);
    const sealedWith = (id: string, counts: SealedCounts) =>
      missingKeySentence(new Map([[id, counts]]), keys);
    expect(sealedWith('0123456789abcdef', { webhook: 1 })).toContain(
      'key: the secrets of 1 webhook endpoint were',
    );
    expect(sealedWith('0123456789abcdef', { connection: 1, webhook: 2 })).toContain(
      'key: the credentials of 1 billing connection and the secrets of 2 webhook endpoints were',
    );
  });
});

describe('the key’s file', () => {
  it('is made once, for its owner alone, and is never replaced by a start', () => {
    const file = ensureSecretKeyFile(folder);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const text = readFileSync(file, 'utf8');
    expect(ensureSecretKeyFile(folder)).toBe(file);
    expect(readFileSync(file, 'utf8')).toBe(text);
    expect(existsSync(`${file}.${process.pid}`)).toBe(false);
  });

  it('is read again by a running process when it changes: what another sealed opens, and the new key seals', () => {
    const file = join(folder, 'rotated');
    const [older, newer] = [makeSecretKey(), makeSecretKey()];
    writeFileSync(file, older);
    const running = SecretKeys.fromFile(file);
    const binding = aBinding();
    const before = running.seal('x', binding);
    replaceSecretKeys(file, [newer, older]);
    const elsewhere = SecretKeys.fromFile(file).seal('y', binding);
    expect(running.open(elsewhere.ciphertext, binding)).toBe('y');
    expect(running.open(before.ciphertext, binding)).toBe('x');
    expect(running.seal('z', binding).keyId).toBe(elsewhere.keyId);
    rmSync(file);
    expect(running.open(before.ciphertext, binding)).toBe('x');
  });

  it('that is damaged ends the start with a sentence that shows nothing of it', () => {
    const file = secretKeyFile(makeTestFolder('secret-damaged'));
    writeFileSync(file, 'half-a-key');
    expect(() => SecretKeys.fromFile(file)).toThrow(/does not hold a key of 32 bytes/);
    expect(() => SecretKeys.fromFile(file)).not.toThrow(/half-a-key/);
    rmSync(join(file, '..'), { recursive: true });
    expect(() => SecretKeys.fromFile(file)).toThrow(/cannot be read \(ENOENT\)/);
  });
});
