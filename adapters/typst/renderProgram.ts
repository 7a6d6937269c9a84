/**
 * A process that renders one document and ends. The typesetter is native code: a fault in it ends only this process. It
 * receives its input in one message and has neither settings nor secrets.
 */
import { NodeCompiler } from '@myriaddreamin/typst-ts-node-compiler';

/** Input of rendering a document. */
export interface RenderJob {
  template: string;
  /** JSON; the template reads it as data, so nothing in it is markup. */
  data: string;
  fontPaths: string[];
  /** An empty folder, because templates could read its files. */
  workspace: string;
  /** Creation time in the document's metadata, seconds since 1970: equal jobs result in equal bytes. */
  createdSeconds: number;
  standard: DocumentStandard;
}

/** `a-2a`: PDF/A-2a, to be archived. `ua-1`: PDF/UA-1, to be read by everybody. Typst writes one of them. */
export type DocumentStandard = 'a-2a' | 'ua-1';

export type RenderAnswer = { pdf: Uint8Array; standard: string | null } | { error: string };

process.once('message', (job: RenderJob) => {
  process.send?.(render(job), () => process.exit(0));
});

/**
 * Renders a PDF by its standard; where a glyph is in none of the fonts, a plain tagged PDF with the machine's fonts.
 */
function render(job: RenderJob): RenderAnswer {
  try {
    return { pdf: compile(job, false), standard: job.standard };
  } catch (first) {
    try {
      return { pdf: compile(job, true), standard: null };
    } catch {
      return { error: reasonOf(first) };
    }
  }
}

/** The typesetter reports its findings in `code`, and sometimes nothing. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const told = [message, code].filter((one) => typeof one === 'string' && one !== '').join(' ');
  return (told || 'the typesetter found a fault').slice(0, 4_000);
}

/** Typesets a job in this process; `isLoose`: with fonts of the machine, and without a standard. */
export function compile(job: RenderJob, isLoose: boolean): Uint8Array {
  const compiler = NodeCompiler.create({
    workspace: job.workspace,
    fontArgs: [{ fontPaths: job.fontPaths }],
  });
  return compiler.pdf(
    { mainFileContent: job.template, inputs: { data: job.data, loose: isLoose ? 'yes' : 'no' } },
    { creationTimestamp: job.createdSeconds, ...(isLoose ? {} : { pdfStandard: job.standard }) },
  );
}
