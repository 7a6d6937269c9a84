import { useRef } from 'react';

/** A new Idempotency-Key. crypto.randomUUID exists on secure origins alone. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}

/** The key of a request: the same for a repeat of the same body, a new one for another body. */
export function useIdempotencyKey(): (body: unknown) => string {
  const last = useRef({ body: '', key: '' });
  return (body) => {
    const text = JSON.stringify(body);
    if (last.current.body !== text) last.current = { body: text, key: newIdempotencyKey() };
    return last.current.key;
  };
}
