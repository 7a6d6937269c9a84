import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { readBillingFile } from '../../../../adapters/billing/file.js';

const HEADER =
  'line_item_line_item_type,line_item_usage_start_date,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_unblended_cost\n';
const CHUNKS = 16;
const CHUNK_BYTES = 1_048_576;

it('the kept part of a file does not hold the chunks that it was cut from', async () => {
  async function* chunks() {
    yield Buffer.from(HEADER);
    for (let at = 0; at < CHUNKS; at += 1) {
      const line = `Usage,2026-09-01T00:00:00Z,AmazonBedrock,USE1-Mystery-number-${at}-of-many,1,0.1\n`;
      yield Buffer.from(line.repeat(Math.ceil(CHUNK_BYTES / line.length)));
    }
  }
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const reader = readBillingFile(chunks(), {
    provider: 'aws_bedrock',
    format: undefined,
    fxRate: undefined,
    skip: new Set(),
  });
  collect();
  const before = process.memoryUsage().heapUsed;
  let next = await reader.next();
  while (!next.done) next = await reader.next();
  collect();
  expect(next.value.unparsed).toHaveLength(CHUNKS);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan((CHUNKS * CHUNK_BYTES) / 2);
});
