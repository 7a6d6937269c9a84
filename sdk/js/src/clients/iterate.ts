import type { OpenCall, Reading } from '../calls.js';
import { quietly } from './tap.js';

/** Reads along with the reader of a stream that a client has already decoded. */

interface Iterated {
  [Symbol.asyncIterator]?: () => AsyncIterator<unknown>;
  getReader?: (options?: unknown) => {
    read(): Promise<{ done: boolean; value?: unknown }>;
    cancel(reason?: unknown): Promise<void>;
  };
}

/** Changes how this stream is iterated; the stream and its items stay the same objects. */
export function tapStream(
  stream: unknown,
  call: OpenCall,
  reading: Reading,
  see: (item: unknown) => void,
): void {
  if (typeof stream !== 'object' || stream === null) {
    call.end('ok', reading);
    return;
  }
  const given = stream as Iterated;
  const iterate = given[Symbol.asyncIterator];
  if (iterate) {
    define(given, Symbol.asyncIterator, () => tapIterator(iterate.call(given), call, reading, see));
  }
  const { getReader } = given;
  if (typeof getReader === 'function') {
    define(given, 'getReader', (options?: unknown) => {
      const reader = getReader.call(given, options);
      const read = reader.read.bind(reader);
      define(reader, 'read', async () => {
        try {
          const result = await read();
          if (result.done) call.end('ok', reading);
          else quietly(() => see(result.value));
          return result;
        } catch (error) {
          call.fail(error, reading);
          throw error;
        }
      });
      const cancel = reader.cancel.bind(reader);
      define(reader, 'cancel', (reason?: unknown) => {
        call.end(leftAs(reading), reading);
        return cancel(reason);
      });
      return reader;
    });
  }
}

/** Changes this iterator in place. */
export function tapIterator<Iterator extends AsyncIterator<unknown>>(
  iterator: Iterator,
  call: OpenCall,
  reading: Reading,
  see: (item: unknown) => void,
): Iterator {
  const next = iterator.next.bind(iterator);
  define(iterator, 'next', async (...args: [] | [undefined]) => {
    try {
      const result = await next(...args);
      if (result.done) call.end('ok', reading);
      else quietly(() => see(result.value));
      return result;
    } catch (error) {
      call.fail(error, reading);
      throw error;
    }
  });
  const leave = iterator.return?.bind(iterator);
  if (leave) {
    define(iterator, 'return', (value?: unknown) => {
      call.end(leftAs(reading), reading);
      return leave(value);
    });
  }
  return iterator;
}

/** A reader that leaves after the answer's end has only not waited for the end of the stream. */
export function leftAs(reading: Reading): 'ok' | 'cancelled' {
  return reading.stopReason === undefined ? 'cancelled' : 'ok';
}

export function define(target: object, name: string | symbol, value: unknown): void {
  Object.defineProperty(target, name, { configurable: true, enumerable: false, writable: true, value });
}
