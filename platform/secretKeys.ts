import { readFileSync, statSync } from 'node:fs';
import {
  findSealingKeyId,
  isSignedBy,
  open,
  parseSecretKey,
  type SecretBinding,
  type SecretKey,
  seal,
  sign,
} from './secretBox.js';
import { StartError } from './startError.js';

/** Separator of keys in the setting and in the file; the current key is the first. */
const BETWEEN_KEYS = /[\s,]+/;
/** Most keys of one setting. */
const KEYS_MAX = 10;

const HOW_TO_MAKE_ONE = 'make one with `openssl rand -base64 32`';

/**
 * Parses keys, the current one first; undefined: one of them is malformed, which the caller reports by the name of its
 * setting.
 */
export function parseSecretKeys(text: string): SecretKey[] | undefined {
  const parts = text.split(BETWEEN_KEYS).filter((part) => part !== '');
  const keys = parts.flatMap((part) => parseSecretKey(part) ?? []);
  return keys.length === parts.length && keys.length > 0 && keys.length <= KEYS_MAX ? keys : undefined;
}

/** @throws StartError with the sentence for a start without a key. */
export function refuseMissingSecretKey(): never {
  throw new StartError(
    `TRUEUP_SECRET_KEY is missing: the providers' credentials and webhook secrets are sealed with it; ${HOW_TO_MAKE_ONE}, give every process the same, and keep a copy of it apart from the database's backup.`,
  );
}

/**
 * The keys that encrypt and decrypt stored credentials. Keys from a file are read again when the file has changed, at
 * each encryption and when a ciphertext names an unknown key, so that a rotation needs no restart.
 */
export class SecretKeys {
  #keys: SecretKey[];
  readonly #file: string | undefined;
  #seen = '';

  private constructor(keys: SecretKey[], file: string | undefined) {
    this.#keys = keys;
    this.#file = file;
  }

  static of(text: string): SecretKeys {
    const keys = parseSecretKeys(text);
    if (!keys)
      throw new StartError(
        `TRUEUP_SECRET_KEY is not a list of keys of 32 bytes in base64: ${HOW_TO_MAKE_ONE}.`,
      );
    return new SecretKeys(keys, undefined);
  }

  /** @throws StartError when the file cannot be read or contains no key. */
  static fromFile(file: string): SecretKeys {
    const keys = new SecretKeys([], file);
    keys.#read();
    return keys;
  }

  /** Encrypts with the current key. */
  seal(text: string, binding: SecretBinding): { ciphertext: Buffer; keyId: string } {
    this.#readIfChanged();
    const [current] = this.#keys;
    if (!current) throw new Error('there is no secret key');
    return { ciphertext: seal(current, text, binding), keyId: current.id };
  }

  /** Decrypts; undefined: its key is not available, or the context differs. */
  open(sealed: Buffer, binding: SecretBinding): string | undefined {
    const key = this.#keyOf(sealed);
    return key && open(key, sealed, binding);
  }

  /** Signs with the current key; `signature` in hex. Each purpose has a derived key. */
  sign(purpose: string, text: string): { keyId: string; signature: string } {
    this.#readIfChanged();
    const [current] = this.#keys;
    if (!current) throw new Error('there is no secret key');
    return { keyId: current.id, signature: sign(current, purpose, text).toString('hex') };
  }

  /** Whether `sign` made a signature; `unknown_key`: its key is not available. */
  checkSignature(
    purpose: string,
    text: string,
    signed: { keyId: string; signature: string },
  ): 'good' | 'forged' | 'unknown_key' {
    this.#readIfChanged();
    const key = this.#keys.find(({ id }) => id === signed.keyId);
    if (!key) return 'unknown_key';
    return isSignedBy(key, purpose, text, Buffer.from(signed.signature, 'hex')) ? 'good' : 'forged';
  }

  get currentId(): string {
    this.#readIfChanged();
    return this.#keys[0]?.id ?? '';
  }

  get ids(): ReadonlySet<string> {
    this.#readIfChanged();
    return new Set(this.#keys.map(({ id }) => id));
  }

  #keyOf(sealed: Buffer): SecretKey | undefined {
    const id = findSealingKeyId(sealed);
    const known = this.#keys.find((key) => key.id === id);
    if (known || this.#file === undefined) return known;
    this.#readIfChanged();
    return this.#keys.find((key) => key.id === id);
  }

  /** A temporarily missing file changes nothing: the present keys stay. */
  #readIfChanged(): void {
    if (this.#file === undefined) return;
    try {
      if (stampOf(this.#file) !== this.#seen) this.#read();
    } catch {
      return;
    }
  }

  #read(): void {
    const file = this.#file as string;
    let text: string;
    let stamp: string;
    try {
      stamp = stampOf(file);
      text = readFileSync(file, 'utf8');
    } catch (error) {
      throw new StartError(
        `The secret key's file ${file} cannot be read (${(error as NodeJS.ErrnoException).code}): give it back, or name another by TRUEUP_SECRET_KEY_FILE.`,
      );
    }
    const keys = parseSecretKeys(text);
    if (!keys)
      throw new StartError(
        `The secret key's file ${file} does not hold a key of 32 bytes in base64: give back the one that was there, or ${HOW_TO_MAKE_ONE}.`,
      );
    this.#keys = keys;
    this.#seen = stamp;
  }
}

/** Changes with each replacement of the file. */
function stampOf(file: string): string {
  const { ino, mtimeMs, size } = statSync(file);
  return `${ino} ${mtimeMs} ${size}`;
}

/** Number of secrets that one key encrypted: credentials of connections, secrets of webhook endpoints. */
export interface SealedCounts {
  connection?: number;
  webhook?: number;
}

/** Encrypted secrets in words: `the credentials of 2 billing connections and the secrets of 1 webhook endpoint`. */
export function describeSealed({ connection = 0, webhook = 0 }: SealedCounts): string {
  const many = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
  const words = [];
  if (connection > 0) words.push(`the credentials of ${many(connection, 'billing connection')}`);
  if (webhook > 0) words.push(`the secrets of ${many(webhook, 'webhook endpoint')}`);
  return words.join(' and ');
}

/** The warning at start about secrets whose keys are not available; undefined: none is missing. */
export function missingKeySentence(
  sealedByKey: ReadonlyMap<string, SealedCounts>,
  keys: SecretKeys,
): string | undefined {
  const missing = [...sealedByKey].filter(([id]) => !keys.ids.has(id));
  if (missing.length === 0) return undefined;
  const sum = (kind: keyof SealedCounts) => missing.reduce((sum, [, counts]) => sum + (counts[kind] ?? 0), 0);
  const what = describeSealed({ connection: sum('connection'), webhook: sum('webhook') });
  return `wrong or missing secret key: ${what} were sealed with ${missing.map(([id]) => id).join(', ')}, and at hand is ${[...keys.ids].join(', ')}: put the missing key behind the current one (in DATA_DIR/secret-key, or in TRUEUP_SECRET_KEY where that is set), or give them up with ./trueup secrets rotate --forget-unreadable.`;
}
