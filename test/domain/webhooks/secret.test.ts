import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DomainError } from '../../../domain/errors.js';
import {
  type EndpointSecrets,
  findSecretsText,
  formatSecret,
  openSecrets,
  rotateSecrets,
  SECRET_BYTES,
  sealSecrets,
  sealSecretsText,
  secretBytes,
  signingSecrets,
} from '../../../domain/webhooks/secret.js';
import { makeSecretKey } from '../../../platform/secretBox.js';
import { SecretKeys } from '../../../platform/secretKeys.js';

const bytes = fc.uint8Array({ minLength: SECRET_BYTES, maxLength: SECRET_BYTES });
const secret = bytes.map(formatSecret);
const micros = fc.bigInt({ min: 0n, max: 4_000_000_000_000_000n });
const secrets: fc.Arbitrary<EndpointSecrets> = fc.record({
  current: secret,
  previous: fc.option(fc.record({ secret, untilMicros: micros }), { nil: null }),
});
const ORG = 'org';
const ENDPOINT = 'endpoint';

describe('a webhook secret', () => {
  it('is whsec_ and base64 of its bytes, and decodes to them', () => {
    fc.assert(
      fc.property(bytes, (drawn) => {
        const text = formatSecret(drawn);
        expect(text).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
        expect(new Uint8Array(secretBytes(text))).toEqual(drawn);
      }),
    );
  });

  it('is distinguished from other texts and has 32 bytes', () => {
    const good = formatSecret(new Uint8Array(SECRET_BYTES));
    for (const text of [
      '',
      'whsec_',
      good.slice('whsec_'.length),
      good.replace('whsec_', 'WHSEC_'),
      `${good}AAAA`,
    ])
      expect(() => secretBytes(text), text).toThrow(TypeError);
    for (const length of [0, SECRET_BYTES - 1, SECRET_BYTES + 1])
      expect(() => formatSecret(new Uint8Array(length))).toThrow(RangeError);
  });
});

describe('a rotation', () => {
  it('lets the current secret sign too until its grace period is over, and the one before it no more', () => {
    fc.assert(
      fc.property(
        secrets,
        secret,
        micros,
        fc.integer({ min: 0, max: 604_800 }),
        (before, next, now, grace) => {
          const after = rotateSecrets(before, next, now, grace);
          const end = now + BigInt(grace) * 1_000_000n;
          expect(after.current).toBe(next);
          expect(signingSecrets(after, end)).toEqual([next]);
          const during = grace === 0 ? [next] : [next, before.current];
          expect(signingSecrets(after, now)).toEqual(during);
          if (grace > 0) expect(signingSecrets(after, end - 1n)).toEqual(during);
        },
      ),
    );
  });
});

describe('sealed secrets', () => {
  const keys = SecretKeys.of(makeSecretKey());

  it('open unchanged, also after they were sealed again as text', () => {
    fc.assert(
      fc.property(secrets, (given) => {
        const { ciphertext } = sealSecrets(keys, ORG, ENDPOINT, given);
        expect(openSecrets(keys, ORG, { id: ENDPOINT, ciphertext })).toEqual(given);
        const text = findSecretsText(keys, ORG, ENDPOINT, ciphertext) ?? '';
        const again = sealSecretsText(keys, ORG, ENDPOINT, text).ciphertext;
        expect(openSecrets(keys, ORG, { id: ENDPOINT, ciphertext: again })).toEqual(given);
      }),
    );
  });

  it('open for no other row, and a missing key is distinguished from given-up secrets', () => {
    const { ciphertext } = sealSecrets(keys, ORG, ENDPOINT, {
      current: formatSecret(new Uint8Array(SECRET_BYTES)),
      previous: null,
    });
    const codeOf = (
      sealer: SecretKeys,
      orgId: string,
      endpoint: { id: string; ciphertext: Buffer | null },
    ) => {
      try {
        openSecrets(sealer, orgId, endpoint);
      } catch (error) {
        return (error as DomainError).code;
      }
      return 'opened';
    };
    expect(codeOf(keys, ORG, { id: ENDPOINT, ciphertext })).toBe('opened');
    expect(codeOf(keys, 'another', { id: ENDPOINT, ciphertext })).toBe('secret_key_missing');
    expect(codeOf(keys, ORG, { id: 'another', ciphertext })).toBe('secret_key_missing');
    expect(codeOf(SecretKeys.of(makeSecretKey()), ORG, { id: ENDPOINT, ciphertext })).toBe(
      'secret_key_missing',
    );
    expect(codeOf(keys, ORG, { id: ENDPOINT, ciphertext: null })).toBe('credentials_missing');
  });
});
