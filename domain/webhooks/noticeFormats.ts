import type { EndpointFormat } from './messages.js';
import { type NoticeText, plainText } from './notices.js';

/** The content: a notice, or the notices of a digest. */
export interface ShownNotice extends NoticeText {
  lines: readonly NoticeText[];
  /** Notices of the digest beyond `lines`. */
  more: number;
}

/** The body of a request to an incoming webhook, in the format of the receiver. */
export function hookBody(format: Exclude<EndpointFormat, 'standard' | 'email'>, notice: ShownNotice): string {
  return JSON.stringify(format === 'slack' ? slackBody(notice) : teamsBody(notice));
}

const lineText = ({ sentence, amount }: NoticeText): string =>
  amount === null ? sentence : `${sentence} (${amount})`;

const moreText = (more: number): string => `and ${more} more`;

/** Characters of a text object (Slack, "Text object"). */
const SLACK_TEXT_MAX = 3_000;

/** Slack, "Escaping text": these three alone; an unescaped `<` would begin a link or a mention of everybody. */
const slackEscaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
/** A bar would end the address of a link. */
const slackLink = (link: string, text: string): string =>
  `<${slackEscaped(link.replaceAll('|', '%7C'))}|${slackEscaped(text)}>`;

/** The body of a Slack incoming webhook: `text` is what notifications show, `blocks` what the channel shows. */
function slackBody(notice: ShownNotice): object {
  const section = (text: string) => ({
    type: 'section',
    // verbatim: names of channels and addresses in a sentence stay text.
    text: { type: 'mrkdwn', text, verbatim: true },
  });
  const open = slackLink(notice.link, 'Open in Trueup');
  return {
    text: slackEscaped(lineText(notice)),
    blocks: [
      section(slackEscaped(lineText(notice))),
      ...slackSections(notice).map(section),
      { type: 'context', elements: [{ type: 'mrkdwn', text: open, verbatim: true }] },
    ],
  };
}

/** The lines of a digest, in texts of the length that Slack takes. */
function slackSections({ lines, more }: ShownNotice): string[] {
  const texts: string[] = [];
  const rows = lines.map((line) => `• ${slackEscaped(lineText(line))} ${slackLink(line.link, 'Open')}`);
  if (more > 0) rows.push(moreText(more));
  for (const row of rows) {
    const joined = `${texts.at(-1)}\n${row}`;
    if (texts.length > 0 && joined.length <= SLACK_TEXT_MAX) texts[texts.length - 1] = joined;
    else texts.push(row.slice(0, SLACK_TEXT_MAX));
  }
  return texts;
}

/**
 * The body for a Teams workflow or incoming webhook: a message with one Adaptive Card. Its texts are TextRuns, which
 * show every character as it is; a TextBlock would read Markdown.
 */
function teamsBody(notice: ShownNotice): object {
  const paragraph = (text: string, isStrong = false) => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text, ...(isStrong ? { weight: 'Bolder' } : {}) }],
  });
  const body = [
    paragraph(notice.sentence),
    ...(notice.amount === null ? [] : [paragraph(notice.amount, true)]),
    ...notice.lines.map((line) => paragraph(`• ${lineText(line)}`)),
    ...(notice.more > 0 ? [paragraph(moreText(notice.more))] : []),
  ];
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.2',
          body,
          actions: [{ type: 'Action.OpenUrl', title: 'Open in Trueup', url: notice.link }],
        },
      },
    ],
  };
}

/** Most characters of a subject; mail programs show fewer. */
const SUBJECT_CHARS_MAX = 150;

/** Subject and the two parts of a mail; `unsubscribeUrl` is the page that ends the delivery. */
export function mailParts(
  notice: ShownNotice,
  unsubscribeUrl: string,
): { subject: string; text: string; html: string } {
  const end = 'You get this mail because an administrator of Trueup entered your address.';
  const paragraphs = [
    notice.sentence,
    ...(notice.amount === null ? [] : [`Amount: ${notice.amount}`]),
    ...notice.lines.map((line) => `- ${lineText(line)}\n  ${line.link}`),
    ...(notice.more > 0 ? [moreText(notice.more)] : []),
    notice.link,
    `-- \n${end}\nEnd it: ${unsubscribeUrl}`,
  ];
  const items = notice.lines.map(
    (line) => `<li>${htmlEscaped(lineText(line))} <a href="${htmlEscaped(line.link)}">Open</a></li>`,
  );
  if (notice.more > 0) items.push(`<li>${moreText(notice.more)}</li>`);
  const html = [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Trueup</title></head>',
    '<body style="font-family:sans-serif;line-height:1.5">',
    `<p>${htmlEscaped(notice.sentence)}</p>`,
    notice.amount === null ? '' : `<p><strong>${htmlEscaped(notice.amount)}</strong></p>`,
    items.length > 0 ? `<ul>${items.join('')}</ul>` : '',
    `<p><a href="${htmlEscaped(notice.link)}">Open in Trueup</a></p>`,
    `<p style="color:#555">${end} <a href="${htmlEscaped(unsubscribeUrl)}">End it</a></p>`,
    '</body></html>',
  ];
  return {
    subject: plainText(`Trueup: ${lineText(notice)}`, SUBJECT_CHARS_MAX),
    text: `${paragraphs.join('\n\n')}\n`,
    html: html.join('\n'),
  };
}

const HTML_ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const htmlEscaped = (text: string): string => text.replace(/[&<>"']/g, (char) => HTML_ESCAPES[char] ?? char);
