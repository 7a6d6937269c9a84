import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { createWorker, OEM } from 'tesseract.js';
import type { PageTurn, Word } from '../../domain/invoices/pageWords.js';
import { packRows } from './packedRows.js';
import {
  asPgm,
  EDGE_SHARE,
  fullestBand,
  type GreyImage,
  isSideways,
  levelImage,
  scaleImage,
  skewOf,
  turnImage,
  whitenPaper,
} from './pageImage.js';

/**
 * The bundled WebAssembly build, or the system's program. Both read with the bundled language data and find the same
 * words; the program takes less CPU time.
 */
export type OcrProgram =
  | 'bundled'
  | {
      path: string;
      /** Folder for the unpacked language data; created if missing. */
      dataDir: string;
    };

/** A word as recognised: pixels of the image. */
export type OcrWord = Word;

export interface LocalOcr {
  recognize(image: GreyImage): Promise<OcrWord[]>;
}

/** One uniform block: rows of a table stay whole. */
const PAGE_SEGMENTATION = '6';
const LANGUAGE = 'eng';
const PACKED_DATA = join(
  dirname(createRequire(import.meta.url).resolve('@tesseract.js-data/eng/package.json')),
  '4.0.0_best_int',
);

/** Engines end with this process. */
export async function openLocalOcr(program: OcrProgram, dpi: number): Promise<LocalOcr> {
  if (program === 'bundled') return openBundled(dpi);
  let ocr: LocalOcr | undefined;
  return {
    async recognize(image) {
      if (ocr === undefined) {
        try {
          const system = openSystem(program, dpi);
          const words = await system.recognize(image);
          ocr = system;
          return words;
        } catch {
          // The program is too old or incomplete.
          ocr = await openBundled(dpi);
        }
      }
      return ocr.recognize(image);
    },
  };
}

async function openBundled(dpi: number): Promise<LocalOcr> {
  const worker = await createWorker(LANGUAGE, OEM.LSTM_ONLY, {
    // Without a path it would ask a server, and without `none` write into the working folder.
    langPath: PACKED_DATA,
    cacheMethod: 'none',
    gzip: true,
  });
  await worker.setParameters({
    tessedit_pageseg_mode: PAGE_SEGMENTATION as never,
    user_defined_dpi: String(dpi),
  });
  return {
    async recognize(image) {
      const { data: result } = await worker.recognize(asPgm(image), {}, { text: false, blocks: true });
      return (result.blocks ?? []).flatMap(({ paragraphs }) =>
        paragraphs.flatMap(({ lines }) =>
          lines.flatMap(({ words }) =>
            words.map(({ text, confidence, bbox: { x0, y0, x1, y1 } }) => ({
              text,
              x: x0,
              y: y0,
              width: x1 - x0,
              height: y1 - y0,
              confidence: confidence / 100,
            })),
          ),
        ),
      );
    },
  };
}

function openSystem({ path, dataDir }: Exclude<OcrProgram, 'bundled'>, dpi: number): LocalOcr {
  unpackData(dataDir);
  const args = ['stdin', 'stdout', '--tessdata-dir', dataDir, '-l', LANGUAGE, '--oem', '1'];
  args.push('--psm', PAGE_SEGMENTATION, '--dpi', String(dpi), '-c', 'tessedit_create_tsv=1');
  return { recognize: async (image) => wordsOfTsv(await run(path, args, asPgm(image))) };
}

/** The program reads no packed data. Several processes may do this at once. */
function unpackData(folder: string): void {
  const file = join(folder, `${LANGUAGE}.traineddata`);
  if (existsSync(file)) return;
  mkdirSync(folder, { recursive: true });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, gunzipSync(readFileSync(join(PACKED_DATA, `${LANGUAGE}.traineddata.gz`))));
  renameSync(draft, file);
}

/** The program's table: level, page, block, paragraph, line, word, left, top, width, height, confidence, text. */
const WORD_LEVEL = '5';

export function wordsOfTsv(tsv: string): OcrWord[] {
  return tsv.split('\n').flatMap((row) => {
    const [level, , , , , , left, top, width, height, confidence, text = ''] = row.split('\t');
    if (level !== WORD_LEVEL || text.trim() === '') return [];
    const box = { x: Number(left), y: Number(top), width: Number(width), height: Number(height) };
    return [{ text: text.trim(), ...box, confidence: Number(confidence) / 100 }];
  });
}

/** In this process's group, so that it ends with it. */
function run(program: string, args: readonly string[], input: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    // Threads do not speed up a page, and they starve other processes.
    const env = { OMP_THREAD_LIMIT: '1' };
    const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    const out: Buffer[] = [];
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString('utf8')).slice(-500);
    });
    child.stdin.on('error', () => undefined);
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(Buffer.concat(out).toString('utf8'));
      else reject(new Error(`${program} ended with ${code}: ${stderr.trim()}`));
    });
    child.stdin.end(input);
  });
}

/** Mean confidence of a page that is upright and legible; upside down it is below 0.5. */
const UPRIGHT_CONFIDENCE_MIN = 0.7;
const UPRIGHT_WORDS_MIN = 10;
/** Share of the page that is recognised to compare two orientations. */
const TRIAL_SHARE = 0.35;

export interface UprightWords {
  turn: PageTurn | 0;
  words: OcrWord[];
}

/** Recognises a page that may be turned by right angles and skewed. Words have their places on the turned page. */
export async function recognizeUpright(ocr: LocalOcr, image: GreyImage): Promise<UprightWords> {
  const white = whitenPaper(image);
  const likely = isSideways(white) ? ([90, 270] as const) : ([0, 180] as const);
  const skew = skewOf(turnImage(white, likely[0]));
  const turned = turnImage(image, likely[0]);
  const level = skew === 0 ? turned : levelImage(turned, skew);
  let turn: PageTurn | 0 = likely[0];
  let words = await recognizeRows(ocr, level);
  if (!isLegible(words)) {
    const trial = fullestBand(whitenPaper(level), TRIAL_SHARE);
    const upended = legibility(await ocr.recognize(turnImage(trial, 180)));
    if (upended > legibility(await ocr.recognize(trial))) {
      turn = likely[1];
      words = await recognizeRows(ocr, turnImage(level, 180));
    }
  }
  return { turn, words: words.map((word) => skewedWord(word, skew, level)) };
}

/** Recognition loses fewer decimal points of small print at this size. */
const RECOGNITION_SCALE = 1.5;

/** A thinner stroke, in pixels at 200 dpi, is the rest of a rule. */
const STROKE_WIDTH_MIN = 3;

/** Recognises a level page row by row. */
async function recognizeRows(ocr: LocalOcr, page: GreyImage): Promise<OcrWord[]> {
  const white = whitenPaper(page);
  const packed = packRows(white, whitenPaper(page, EDGE_SHARE));
  if (packed === undefined) return ocr.recognize(white);
  const words = await ocr.recognize(scaleImage(packed.image, RECOGNITION_SCALE));
  return words.flatMap((word) => {
    const width = word.width / RECOGNITION_SCALE;
    const height = word.height / RECOGNITION_SCALE;
    const place = packed.placeOn({ y: word.y / RECOGNITION_SCALE, height });
    if (word.text === '|' && width < STROKE_WIDTH_MIN) return [];
    return place ? [{ ...word, x: word.x / RECOGNITION_SCALE, ...place, width, height }] : [];
  });
}

/** Converts a word's place from the levelled image to the page. An upside-down page has the same skew. */
function skewedWord(word: OcrWord, skew: number, { width, height }: GreyImage): OcrWord {
  if (skew === 0) return word;
  const sin = Math.sin((skew * Math.PI) / 180);
  const cos = Math.cos((skew * Math.PI) / 180);
  const x = word.x + word.width / 2 - width / 2;
  const y = word.y + word.height / 2 - height / 2;
  return {
    ...word,
    x: x * cos - y * sin + width / 2 - word.width / 2,
    y: x * sin + y * cos + height / 2 - word.height / 2,
  };
}

function isLegible(words: readonly OcrWord[]): boolean {
  const real = words.filter(isRealWord);
  const mean = real.reduce((sum, { confidence }) => sum + confidence, 0) / Math.max(1, real.length);
  return real.length >= UPRIGHT_WORDS_MIN && mean >= UPRIGHT_CONFIDENCE_MIN;
}

/** Number of characters in words with a high confidence. */
function legibility(words: readonly OcrWord[]): number {
  return words
    .filter((word) => isRealWord(word) && word.confidence >= UPRIGHT_CONFIDENCE_MIN)
    .reduce((sum, { text }) => sum + text.length, 0);
}

function isRealWord({ text }: OcrWord): boolean {
  return /[A-Za-z0-9]{2}/.test(text);
}
