import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DomainError } from '../../domain/errors.js';
import { Places } from '../../domain/places.js';
import type { DocumentStandard, RenderAnswer, RenderJob } from './renderProgram.js';

/** A document's data and its creation time. */
export interface Document {
  template: string;
  data: object;
  createdSeconds: number;
  /** PDF/A-2a when absent. */
  standard?: DocumentStandard;
}

export interface RendererLimits {
  /** Largest data, bytes of JSON. */
  dataBytesMax: number;
  pdfBytesMax: number;
  /** Time after which a rendering process is killed, milliseconds. */
  timeoutMs: number;
  /** Documents that are rendered at once; others wait. */
  atOnce: number;
}

export const RENDERER_LIMITS: RendererLimits = {
  dataBytesMax: 16_777_216,
  pdfBytesMax: 67_108_864,
  timeoutMs: 120_000,
  atOnce: 2,
};

/**
 * Renders documents as PDF, each in a separate process, which neither blocks this one nor crashes it when the
 * typesetter fails. Error: document_failed where the data is too large, the time is over, or the typesetter fails.
 */
export class Renderer {
  readonly #limits: RendererLimits;
  readonly #places: Places;

  constructor(limits: RendererLimits = RENDERER_LIMITS) {
    this.#limits = limits;
    this.#places = new Places(limits.atOnce);
  }

  async render({ template, data, createdSeconds, standard = 'a-2a' }: Document): Promise<Buffer> {
    const text = JSON.stringify(data);
    if (Buffer.byteLength(text) > this.#limits.dataBytesMax)
      throw failed(`its data is larger than ${this.#limits.dataBytesMax} bytes`);
    const job = { template, data: text, createdSeconds, standard };
    return this.#places.use(undefined, () => this.#renderJob(job));
  }

  async #renderJob(job: Omit<RenderJob, 'workspace' | 'fontPaths'>): Promise<Buffer> {
    const workspace = mkdtempSync(join(tmpdir(), 'trueup-document-'));
    try {
      const answer = await ask({ ...job, workspace, fontPaths: fontPaths() }, this.#limits.timeoutMs);
      if ('error' in answer) throw failed(answer.error);
      if (answer.pdf.length > this.#limits.pdfBytesMax)
        throw failed(`it is larger than ${this.#limits.pdfBytesMax} bytes`);
      return Buffer.from(answer.pdf);
    } finally {
      rmSync(workspace, { recursive: true, force: true });
    }
  }
}

const failed = (why: string) => new DomainError('document_failed', `the document cannot be set: ${why}`);

/** Font files of the weights that templates use: the typesetter reads no web fonts. */
export function fontPaths(): string[] {
  const folder = dirname(createRequire(import.meta.url).resolve('@expo-google-fonts/inter/package.json'));
  return ['400Regular', '400Regular_Italic', '500Medium', '600SemiBold', '700Bold'].map((name) =>
    join(folder, name),
  );
}

/** Without a build the sources run. */
const IS_BUILT = !import.meta.url.endsWith('.ts');
const PROGRAM = fileURLToPath(new URL(`./renderProgram.${IS_BUILT ? 'js' : 'ts'}`, import.meta.url));

function ask(job: RenderJob, timeoutMs: number): Promise<RenderAnswer> {
  return new Promise((resolve, reject) => {
    const child = fork(PROGRAM, [], {
      execArgv: IS_BUILT ? [] : ['--import', 'tsx'],
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    let answer: RenderAnswer | undefined;
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    child.once('message', (message) => {
      answer = message as RenderAnswer;
    });
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(failed(error.message));
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      if (answer) resolve(answer);
      else
        reject(
          failed(
            signal === 'SIGKILL' ? 'the time for it is over' : `the typesetter ended with ${signal ?? code}`,
          ),
        );
    });
    child.send(job, (error) => {
      if (error) child.kill('SIGKILL');
    });
  });
}
