import { EventEmitter } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DriverConnection, divertCopies, MessageSplitter } from '../../db/copyMessages.js';
import { messageOf } from '../support/copyData.js';

/** Cuts bytes at places, which may repeat. */
function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const bounds = [0, ...places.toSorted((a, b) => a - b), bytes.length];
  return bounds.slice(1).map((end, index) => bytes.subarray(bounds[index], end));
}

/** What comes out of a splitter, in its order; parts of the same kind that follow each other are one. */
function split(chunks: readonly Buffer[]): { kind: string; bytes: string }[] {
  const parts: { kind: string; bytes: string }[] = [];
  const receive = (kind: string) => (bytes: Buffer) => {
    const last = parts.at(-1);
    if (last?.kind === kind) last.bytes += bytes.toString('latin1');
    else parts.push({ kind, bytes: bytes.toString('latin1') });
  };
  const splitter = new MessageSplitter(receive('row'), receive('other'));
  for (const chunk of chunks) splitter.read(chunk);
  return parts;
}

function expectedOf(messages: readonly Buffer[]): { kind: string; bytes: string }[] {
  const parts: { kind: string; bytes: string }[] = [];
  for (const message of messages) {
    const kind = message[0] === 'd'.charCodeAt(0) ? 'row' : 'other';
    const bytes = message.toString('latin1');
    const last = parts.at(-1);
    if (last?.kind === kind) last.bytes += bytes;
    else parts.push({ kind, bytes });
  }
  return parts;
}

const aMessage = fc
  .tuple(
    fc.constantFrom('d', 'd', 'd', 'C', 'Z', 'E', 'N', 'c', 'H', 'D'),
    fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)) }),
  )
  .map(([code, body]) => messageOf(code, body));

const A_COPY = [
  messageOf('C', 'SET\0'),
  messageOf('H', '\0\0\x01\0\0'),
  messageOf('d', 'dddd\tfirst\n'),
  messageOf('N', 'a notice\0'),
  messageOf('d', '\n'),
  messageOf('d', ''),
  messageOf('d', `${'x'.repeat(300)}\n`),
  messageOf('c', ''),
  messageOf('C', 'COPY 4\0'),
  messageOf('Z', 'T'),
];

describe('messages of the database', () => {
  it('are split into rows of COPY and others, wherever one or two cuts fall', () => {
    const bytes = Buffer.concat(A_COPY);
    const expected = expectedOf(A_COPY);
    for (let first = 0; first <= bytes.length; first += 1)
      for (let second = first; second <= Math.min(first + 12, bytes.length); second += 1)
        expect(split(cutAt(bytes, [first, second]))).toEqual(expected);
  });

  it('are split in the same way byte by byte', () => {
    const bytes = Buffer.concat(A_COPY);
    expect(split(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toEqual(expectedOf(A_COPY));
  });

  it('are split whatever they hold and wherever they are cut', () => {
    fc.assert(
      fc.property(fc.array(aMessage), fc.array(fc.nat()), (messages, places) => {
        const bytes = Buffer.concat(messages);
        const cuts = places.map((place) => place % (bytes.length + 1));
        expect(split(cutAt(bytes, cuts))).toEqual(expectedOf(messages));
      }),
    );
  });

  it('of more than two gigabytes are counted without a sign', () => {
    const head = Buffer.from([0x64, 0xf0, 0, 0, 0]);
    const parts: number[] = [];
    const splitter = new MessageSplitter(
      (bytes) => parts.push(bytes.length),
      () => parts.push(-1),
    );
    splitter.read(head);
    splitter.read(Buffer.from('CZC'));
    expect(parts).toEqual([5, 3]);
  });
});

it('rows of COPY pass the driver’s parser by, which receives everything else in its order', () => {
  const seen: [string, string][] = [];
  const stream = new EventEmitter();
  stream.on('data', (chunk: Buffer) => seen.push(['parser', chunk.toString('latin1')]));
  const connection = Object.assign(new EventEmitter(), { stream }) as DriverConnection;
  connection.on('copyData', ({ chunk }: { chunk: Buffer }) => seen.push(['query', chunk.toString('latin1')]));
  divertCopies(connection);
  stream.emit('data', Buffer.concat(A_COPY));
  expect(seen.map(([to]) => to)).toEqual(['parser', 'query', 'parser', 'query', 'parser']);
  expect(seen.map(([, bytes]) => bytes).join('')).toBe(Buffer.concat(A_COPY).toString('latin1'));
});
