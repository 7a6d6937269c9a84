import { hash } from 'node:crypto';

/** The sha256 of a text in hexadecimal digits, or its first ones. */
export function hexDigest(text: string, digits = 64): string {
  return hash('sha256', text).slice(0, digits);
}
