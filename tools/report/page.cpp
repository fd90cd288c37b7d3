#include "tools/report/page.hpp"

namespace guardbit::tools {

namespace {

// Pictures have a white ground; where the page is dark they are inverted, hues kept.
constexpr const char* style = R"(
:root{--back:#fff;--text:#1b1f24;--quiet:#667;--line:#d4d8de;--bar:#8a96a3;--c0:#0b62c4;--c1:#c2410c;--c2:#15803d;--c3:#9333ea;--c4:#b8860b;--c5:#be185d;--hot:200,40,20}
@media(prefers-color-scheme:dark){:root{--back:#14171b;--text:#e6e9ee;--quiet:#9aa3ae;--line:#343a42;--bar:#7d8894;--c0:#6cb0ff;--c1:#ff9b6a;--c2:#5fd38d;--c3:#c99bff;--c4:#e6c35c;--c5:#ff8dbd;--hot:255,110,80}figure svg{filter:invert(.915) hue-rotate(180deg) brightness(1.3)}}
*{box-sizing:border-box}body{margin:0 auto;padding:1.5rem;max-width:75rem;background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}p{max-width:48rem}.quiet{color:var(--quiet)}
figure{margin:1rem 0}figure svg{width:100%;max-width:50rem;height:auto;display:block}.narrow{display:none}@media screen and (max-width:600px){.wide{display:none}.narrow{display:block}}.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:0 1.5rem}h3{font-size:1rem;margin:1.2rem 0 .2rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:9rem}pre{overflow-x:auto}code{overflow-wrap:anywhere}.wraps{white-space:pre-wrap;overflow-wrap:anywhere}th{position:sticky;top:0;background:var(--back)}summary{cursor:pointer}
@media print{:root{--back:#fff;--text:#000;--line:#999}body{max-width:none;padding:0}details,figure,tr{break-inside:avoid}figure svg{filter:none;max-width:150mm}.scroll{overflow:visible}.plots{grid-template-columns:1fr 1fr}section{break-inside:avoid}h2,h3,p.quiet{break-after:avoid}table{font-size:8px}th{position:static}th,td{padding:.1rem .3rem;white-space:normal}td:first-child{white-space:nowrap}}
)";

}  // namespace

std::string page_head(const std::string& title, std::string_view more) {
  return "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light dark\"><title>" +
         escaped(title) + "</title><style>" + style + std::string(more) + "</style></head><body>";
}

}  // namespace guardbit::tools
