import { object, text } from './readings.js';

/** Reads AWS's event stream: https://docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html#streaming-event-stream. */

const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
/** A longer frame is none: AWS allows 16 MB of payload. */
const FRAME_BYTES_MAX = 33_554_432;
/** An error in the form of an event of Anthropic. */
const ERROR = '{"type":"error"}';
const NOTHING = new Uint8Array(0);

/** Cuts chunks into frames, wherever the chunks end, and passes on the event in each frame as JSON. */
export class FrameReader {
  readonly #see: (event: string) => void;
  /** The frame that has not arrived as a whole: joined only when it has. */
  #parts: Uint8Array[] = [];
  #size = 0;
  /** Bytes that the next cut needs. */
  #needed = PRELUDE_BYTES;
  #isBroken = false;

  constructor(see: (event: string) => void) {
    this.#see = see;
  }

  feed(chunk: Uint8Array): void {
    if (this.#isBroken) return;
    this.#size += chunk.length;
    if (this.#size < this.#needed) {
      // Copied, because the chunk is its reader's from now on.
      this.#parts.push(chunk.slice());
      return;
    }
    let rest = this.#parts.length === 0 ? chunk : joined([...this.#parts, chunk], this.#size);
    this.#needed = PRELUDE_BYTES;
    while (rest.length >= PRELUDE_BYTES) {
      const prelude = new DataView(rest.buffer, rest.byteOffset, PRELUDE_BYTES);
      const length = prelude.getUint32(0);
      const headersEnd = PRELUDE_BYTES + prelude.getUint32(4);
      if (length > FRAME_BYTES_MAX || length < headersEnd + CHECKSUM_BYTES) {
        this.#isBroken = true;
        rest = NOTHING;
        break;
      }
      if (rest.length < length) {
        this.#needed = length;
        break;
      }
      const event = eventOf(
        rest.subarray(PRELUDE_BYTES, headersEnd),
        rest.subarray(headersEnd, length - CHECKSUM_BYTES),
      );
      rest = rest.subarray(length);
      if (event !== undefined) this.#see(event);
    }
    this.#parts = rest.length === 0 ? [] : [rest.slice()];
    this.#size = rest.length;
  }
}

function joined(parts: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The maker's own event, which is in the frame as base64; undefined: the frame has none. */
function eventOf(headers: Uint8Array, payload: Uint8Array): string | undefined {
  const names = textOf(headers);
  if (names.includes(':exception-type') || names.includes(':error-code')) return ERROR;
  try {
    const encoded = text(object(JSON.parse(textOf(payload)))?.bytes);
    return encoded && textOf(Uint8Array.from(atob(encoded), (byte) => byte.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
