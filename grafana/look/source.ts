// A data source in the place of Grafana's own: asks Prometheus, and makes the data frames that Grafana would make.
// Written from the documented behaviour; the plugin that ships with Grafana is not used.

import { DataFrame, FieldType, LoadingState, toDataFrame } from '@grafana/data';
import { sceneGraph } from '@grafana/scenes';
import { Observable } from 'rxjs';

const SCRAPED_EVERY = 60; // seconds, in the history that is shown

type Labels = Record<string, string>;
type Found = { metric: Labels; value?: [number, string]; values?: Array<[number, string]> };

export const issues: string[] = ((window as any).ISSUES = []);

export const source: any = {
  uid: 'prom', name: 'prom', type: 'prometheus', id: 1, interval: '15s',
  meta: { id: 'prometheus', info: {}, module: '', baseUrl: '' },
  getRef: () => ({ type: 'prometheus', uid: 'prom' }),
  query: () => new Observable(),
  metricFindQuery: async (query: any, options: any) => {
    const text = typeof query === 'string' ? query : query.query;
    const scene = options?.scopedVars?.__sceneObject?.value?.valueOf?.() ?? options?.scopedVars?.__sceneObject?.value;
    const parts = /^label_values\((.+),\s*(\w+)\)$/.exec(scene ? sceneGraph.interpolate(scene, text) : text);
    if (!parts) {
      issues.push(`a variable's query is not understood: ${text}`);
      return [];
    }
    const values: string[] = await api(`label/${parts[2]}/values`, { 'match[]': parts[1].replace(/\$\w+/g, '.*') });
    return values.map((value) => ({ text: value, value }));
  },
};

export function run(_: any, request: any): Observable<any> {
  return new Observable((subscriber) => {
    answer(request).then(
      (series) => subscriber.next({ state: LoadingState.Done, series, timeRange: request.range, annotations: [], request }),
      (error) => {
        issues.push(`a query failed: ${error.message}`);
        subscriber.next({ state: LoadingState.Error, series: [], timeRange: request.range, errors: [{ message: error.message }] });
      }
    ).finally(() => subscriber.complete());
  });
}

async function answer(request: any): Promise<DataFrame[]> {
  const frames: DataFrame[] = [];
  const tables = request.targets.filter((target: any) => target.format === 'table').length;
  for (const target of request.targets) {
    const found = await ask(target, request);
    const name = tables > 1 ? `Value #${target.refId}` : 'Value';
    frames.push(...(target.format === 'table' ? [tabled(found, target, name)] : found.map((each) => curve(each, target))));
  }
  return request.targets[0].format === 'heatmap' ? buckets(frames) : frames;
}

async function ask(target: any, request: any): Promise<Found[]> {
  const step = Math.max(SCRAPED_EVERY, Math.round(request.intervalMs / 1000));
  const [from, to] = [request.range.from.unix(), request.range.to.unix()];
  const expr = interpolated(target.expr, request, step, to - from);
  const range = { start: from - (from % step), end: to - (to % step), step };
  const data = target.instant ? await api('query', { query: expr, time: to }) : await api('query_range', { query: expr, ...range });
  if (!data.result.length) {
    issues.push(`no data: ${expr}`);
  }
  return data.result.map((each: Found) => ({ ...each, step }));
}

function interpolated(expr: string, request: any, step: number, seconds: number): string {
  const scene = request.scopedVars?.__sceneObject?.value?.valueOf?.() ?? request.scopedVars?.__sceneObject?.value;
  const own: Record<string, string> = {
    __rate_interval: `${Math.max(step + SCRAPED_EVERY, 4 * SCRAPED_EVERY)}s`,
    __interval: `${step}s`,
    __range: `${seconds}s`,
    __range_s: `${seconds}`,
  };
  const variables = Object.fromEntries(Object.entries(own).map(([name, value]) => [name, { value, text: value }]));
  const text = sceneGraph.interpolate(scene, expr, { ...request.scopedVars, ...variables });
  if (/\$\{?\w/.test(text)) {
    issues.push(`a variable has no value: ${text}`);
  }
  return text;
}

async function api(what: string, parameters: Record<string, string | number>): Promise<any> {
  const body = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)]));
  const response = await fetch(`${(window as any).PROM_URL}/api/v1/${what}?${body}`);
  const answered = await response.json();
  if (answered.status !== 'success') {
    throw new Error(answered.error);
  }
  return answered.data;
}

function curve(found: Found, target: any): DataFrame {
  const points = found.values ?? [found.value!];
  const name = legend(target.legendFormat, found.metric);
  return toDataFrame({
    refId: target.refId,
    name,
    fields: [
      { name: 'Time', type: FieldType.time, config: { interval: (found as any).step * 1000 }, values: points.map(([at]) => at * 1000) },
      { name: 'Value', type: FieldType.number, labels: found.metric, config: { displayNameFromDS: name }, values: points.map(([, text]) => Number(text)) },
    ],
  });
}

function tabled(found: Found[], target: any, value: string): DataFrame {
  const labels = [...new Set(found.flatMap((each) => Object.keys(each.metric)))];
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: found.map((each) => each.value![0] * 1000) },
      ...labels.map((label) => ({ name: label, type: FieldType.string, values: found.map((each) => each.metric[label]) })),
      { name: value, type: FieldType.number, values: found.map((each) => Number(each.value![1])) },
    ],
  });
}

// Prometheus's buckets are cumulative, a heatmap shows what is in each.
function buckets(frames: DataFrame[]): DataFrame[] {
  const bound = (frame: DataFrame) => Number(frame.fields[1].labels!.le.replace('+Inf', 'Infinity'));
  const sorted = [...frames].sort((one, other) => bound(one) - bound(other));
  const below = sorted.map((frame) => new Map(frame.fields[0].values.map((at: number, i: number) => [at, frame.fields[1].values[i]])));
  return sorted.map((frame, i) => toDataFrame({
    ...frame,
    fields: [
      frame.fields[0],
      { ...frame.fields[1], values: frame.fields[0].values.map((at: number, j: number) => frame.fields[1].values[j] - (i ? below[i - 1].get(at) ?? 0 : 0)) },
    ],
  }));
}

function legend(format: string | undefined, labels: Labels): string {
  if (!format) {
    const { __name__: name, ...rest } = labels;
    return `${name ?? ''}{${Object.entries(rest).map(([label, value]) => `${label}="${value}"`).join(', ')}}`;
  }
  return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? '');
}
