import { createHash, createHmac } from 'node:crypto';

/** What signs a request: AWS's long-term keys, or temporary ones with their token. */
export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

export interface RequestToSign {
  method: string;
  url: URL;
  /** Lower-case names; all of them are signed, beside `host` and the time. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';

/**
 * The headers that prove who asks, by AWS Signature Version 4 (IAM User Guide, "Create a signed AWS API request"):
 * `authorization`, `x-amz-date` and, with temporary credentials, `x-amz-security-token`.
 */
export function signAws(
  request: RequestToSign,
  credentials: AwsCredentials,
  of: { region: string; service: string },
  nowMicros: bigint,
): Record<string, string> {
  const time = `${new Date(Number(nowMicros / 1_000n)).toISOString().replace(/[-:]|\.\d{3}/g, '')}`;
  const added: Record<string, string> = {
    'x-amz-date': time,
    ...(credentials.sessionToken === undefined ? {} : { 'x-amz-security-token': credentials.sessionToken }),
  };
  const headers = { ...request.headers, host: request.url.host, ...added };
  const names = Object.keys(headers).sort();
  const canonical = [
    request.method,
    request.url.pathname || '/',
    canonicalQuery(request.url),
    ...names.map(
      (name) => `${name}:${(headers[name as keyof typeof headers] ?? '').trim().replace(/ +/g, ' ')}`,
    ),
    '',
    names.join(';'),
    sha256(request.body),
  ].join('\n');
  const scope = `${time.slice(0, 8)}/${of.region}/${of.service}/aws4_request`;
  const text = [ALGORITHM, time, scope, sha256(canonical)].join('\n');
  const key = [time.slice(0, 8), of.region, of.service, 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${credentials.secretAccessKey}`,
  );
  const signature = createHmac('sha256', key).update(text).digest('hex');
  return {
    ...added,
    authorization: `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
  };
}

function canonicalQuery(url: URL): string {
  return [...url.searchParams]
    .map(([name, value]): [string, string] => [encode(name), encode(value)])
    .sort(([a, x], [b, y]) => (a < b || (a === b && x < y) ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

/** As encodeURIComponent, with the four characters that AWS encodes too. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
