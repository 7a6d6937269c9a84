import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { DomainError, type ErrorCode, invalidField } from '../../domain/errors.js';
import type { IncomingBody } from './body.js';

/** Limits of one multipart body; the parser itself limits the headers of a part to 16 KiB. */
const LIMITS = {
  files: 1,
  fields: 8,
  parts: 20,
  fieldNameSize: 100,
  fieldSize: 4_096,
} as const;
/** Most bytes that boundaries, part headers and fields add to the file. */
const OVERHEAD_BYTES = 131_072;
const FILENAME_CHARS_MAX = 255;

/** The parser's types declare a name, but a part may lack one. */
const isName = (name: string | undefined): name is string => name !== undefined && name !== '';
const namelessPart = () => broken('a part has no name');

/** A received file with the form's other fields. */
export interface ReceivedFile {
  filename: string;
  sizeBytes: number;
  /** 64 hex digits. */
  sha256: string;
  fields: Readonly<Record<string, string>>;
}

/** The way to receive a form's file. */
export interface FileForm {
  /** The field of the file; absent: `file`. */
  field?: string;
  maxBytes: number;
  chunkBytes: number;
  /** The file's noun for messages: `the bill`. */
  what: string;
  /** Error code of a file without bytes; absent where such a file counts as none, as browsers send it. */
  emptyCode?: ErrorCode;
  /** Remedy in the message about a file that is too large. */
  tooLargeRemedy: string;
}

type StoredFile = Omit<ReceivedFile, 'fields'>;
type FormOptions = FileForm & { store(chunk: Buffer): Promise<void> };

/** As receiveForm, with exactly one file. Error missing_parameter without it. */
export async function receiveFile(incoming: IncomingBody, options: FormOptions): Promise<ReceivedFile> {
  const { file, fields } = await receiveForm(incoming, options, true);
  return { ...(file as StoredFile), fields };
}

/**
 * Receives a form with at most one file. Passes its bytes to `store` in order, in chunks of
 * `chunkBytes` (the last one shorter), and waits for each. Other fields may precede or follow the file. Errors:
 * unsupported_media_type; invalid_multipart for a broken form, a second file, too many parts; payload_too_large beyond
 * `maxBytes`; missing_parameter where a file is required. Errors of `store` are rethrown unchanged.
 */
export async function receiveForm(
  incoming: IncomingBody,
  options: FormOptions,
  isRequired = false,
): Promise<{ file: StoredFile | undefined; fields: Readonly<Record<string, string>> }> {
  const { maxBytes, what, field = 'file' } = options;
  if (incoming.mediaType !== 'multipart/form-data') {
    throw new DomainError(
      'unsupported_media_type',
      `send multipart/form-data with the file in the field "${field}"`,
    );
  }
  if ((incoming.declaredBytes ?? 0) > maxBytes + OVERHEAD_BYTES) throw tooLarge(options);
  const form = openForm(incoming.contentType, maxBytes);
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  let stored: Promise<StoredFile | undefined> | undefined;
  const ended = new Promise<void>((resolve, reject) => {
    form.on('field', (name, value, info) => {
      if (info.valueTruncated || info.nameTruncated) reject(broken('a field is too long'));
      else if (!isName(name)) reject(namelessPart());
      else if (name in fields) reject(broken(`the field ${name} is given twice`));
      else fields[name] = value;
    });
    form.on('file', (name, stream, info) => {
      if (name !== field) {
        stream.resume();
        reject(
          isName(name)
            ? invalidField(
                'body',
                name.slice(0, 100),
                `the file belongs in the field "${field}"`,
                'invalid_multipart',
              )
            : namelessPart(),
        );
        return;
      }
      stored = storeFile(stream, info.filename, options);
      stored.catch(reject);
    });
    form.on('filesLimit', () => reject(broken('more than one file')));
    form.on('fieldsLimit', () => reject(broken(`more than ${LIMITS.fields} fields`)));
    form.on('partsLimit', () => reject(broken(`more than ${LIMITS.parts} parts`)));
    form.on('error', (error) => reject(broken(error instanceof Error ? error.message : 'not a form')));
    form.on('close', resolve);
    incoming.stream.once('error', () => reject(cut()));
    incoming.stream.once('close', () => {
      if (!incoming.stream.readableEnded) reject(cut());
    });
  });
  incoming.stream.pipe(form);
  try {
    await ended;
    if (!stored && isRequired)
      throw invalidField('body', field, `is required: ${what} as a file`, 'missing_parameter');
    const file = await stored;
    await incoming.whenRead();
    incoming.contentDigest = digestOf(file, fields);
    return { file, fields };
  } catch (error) {
    incoming.stream.unpipe(form);
    form.destroy();
    // The file's reader ends with the form; its failure no longer matters.
    await stored?.catch(() => undefined);
    // The rest is read and dropped, so that the client reads the answer.
    incoming.stream.resume();
    throw error;
  }
}

/** Digest of a form's content, independent of the order and boundaries of its parts. */
function digestOf(file: StoredFile | undefined, fields: Readonly<Record<string, string>>): string {
  const told = [file?.filename, file?.sha256, Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1))];
  return createHash('sha256').update(JSON.stringify(told)).digest('hex');
}

function openForm(contentType: string, maxBytes: number): busboy.Busboy {
  try {
    return busboy({
      headers: { 'content-type': contentType },
      limits: { ...LIMITS, fileSize: maxBytes },
      defParamCharset: 'utf8',
    });
  } catch (error) {
    throw broken(error instanceof Error ? error.message : 'not a form');
  }
}

async function storeFile(
  stream: Readable,
  filename: string | undefined,
  options: FormOptions,
): Promise<StoredFile | undefined> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let tooMuch = false;
  stream.once('limit', () => {
    tooMuch = true;
  });
  for await (const piece of stream as AsyncIterable<Buffer>) {
    hash.update(piece);
    sizeBytes += piece.length;
    held.push(piece);
    heldBytes += piece.length;
    while (heldBytes >= options.chunkBytes) {
      const all = Buffer.concat(held, heldBytes);
      await options.store(all.subarray(0, options.chunkBytes));
      held = [all.subarray(options.chunkBytes)];
      heldBytes -= options.chunkBytes;
    }
    if (tooMuch) break;
  }
  if (tooMuch) throw tooLarge(options);
  if (sizeBytes === 0) {
    if (options.emptyCode === undefined) return undefined;
    throw invalidField('body', options.field ?? 'file', 'is empty', options.emptyCode);
  }
  if (heldBytes > 0) await options.store(Buffer.concat(held, heldBytes));
  return { filename: cleanName(filename), sizeBytes, sha256: hash.digest('hex') };
}

/** A file name for display: the last part of a path, without control characters. Stored files never use it. */
function cleanName(name: string | undefined): string {
  const last = (name ?? '').split(/[\\/]/).at(-1) ?? '';
  const clean = last.replace(/[^\x20-\x7e]/g, '').trim();
  return clean === '' ? 'unnamed' : clean.slice(0, FILENAME_CHARS_MAX);
}

function broken(reason: string): DomainError {
  return new DomainError('invalid_multipart', `the form cannot be read: ${reason.slice(0, 200)}`);
}

function cut(): DomainError {
  return new DomainError(
    'invalid_multipart',
    'the upload ended before it was complete; nothing of it was kept',
  );
}

function tooLarge({ maxBytes, tooLargeRemedy }: FileForm): DomainError {
  return new DomainError('payload_too_large', `the file is larger than ${maxBytes} bytes; ${tooLargeRemedy}`);
}
